#include "pages/adapter_form.h"

#include "text/svg_icon.h"
#include "widgets/card.h"
#include "widgets/path_edit.h"
#include "widgets/wheel_guard.h"

#include <QEvent>
#include <QGridLayout>
#include <QLabel>
#include <QLineEdit>
#include <QSignalBlocker>
#include <QToolButton>
#include <QVBoxLayout>

#include <utility>

namespace mr::ui {

namespace {

// By its key this setting is also the one of a run that trains some layers.
bool isLayers(const LabelledSetting& row)
{
    return std::string_view(row.look->key) == "train_layers";
}

// How an adapter is trained is no part of one that was saved.
bool comesWithAdapter(const LabelledSetting& row)
{
    const std::string_view key = row.look->key;
    return key != "lora_plus" && key != "dropout";
}

} // namespace

// Made from top to bottom, which is the order of the keyboard.
AdapterForm::AdapterForm(QWidget* parent)
    : QWidget(parent)
    , m_simpleGrid(new QGridLayout)
    , m_folderLabel(new QLabel(this))
    , m_folder(nullptr)
    , m_folderNote(makeMutedLabel(this))
    , m_fold(nullptr)
    , m_more(nullptr)
    , m_moreGrid(new QGridLayout)
    , m_wheel(new WheelGuard(this))
{
    addRows();
    arrange();
    m_wheel->guard(this);
    connect(m_folder, &PathEdit::pathChanged, this, [this] {
        folderChanged();
        emit changed();
    });
    connect(m_fold, &QToolButton::toggled, this, &AdapterForm::showMore);
    showMore(false);
    retranslateUi();
    folderChanged();
}

void AdapterForm::addRows()
{
    const auto add = [this](const SettingLook& look, QGridLayout* grid, QWidget* owner) {
        m_rows.push_back(LabelledSetting::make(
            look, SettingEditor::make(*findSpecField(look.key), look, owner), owner));
        const LabelledSetting& row = m_rows.back();
        placeInPairs(grid, row.label, row.editor->widget());
        onEdited(row.editor->widget(), this, [this] { emit changed(); });
        if (isLayers(row))
            row.editor->widget()->setObjectName(QStringLiteral("adapter_layers"));
    };
    const auto looks = SettingWords::adapterLooks();
    for (const SettingLook& look : looks)
        if (!look.isAdvanced)
            add(look, m_simpleGrid, this);
    m_folder = new PathEdit(PathEdit::Want::Folder, this);
    m_folder->setObjectName(QStringLiteral("adapterPath"));
    m_folderLabel->setBuddy(m_folder->edit());
    m_fold = new QToolButton(this);
    m_fold->setObjectName(QStringLiteral("moreOfAdapter"));
    m_fold->setCheckable(true);
    m_fold->setAutoRaise(true);
    m_fold->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    m_fold->setFocusPolicy(Qt::StrongFocus);
    m_more = new QWidget(this);
    for (const SettingLook& look : looks)
        if (look.isAdvanced)
            add(look, m_moreGrid, m_more);
}

void AdapterForm::arrange()
{
    m_moreGrid->setContentsMargins(0, 0, 0, 0);
    m_more->setLayout(m_moreGrid);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(6);
    layout->addSpacing(4);
    layout->addLayout(m_simpleGrid);
    layout->addWidget(m_folderLabel);
    layout->addWidget(m_folder);
    layout->addWidget(m_folderNote);
    layout->addWidget(m_fold, 0, Qt::AlignLeft);
    layout->addWidget(m_more);
}

void AdapterForm::writeTo(RunSpec& spec) const
{
    spec.adapterDir = m_folder->path().toStdString();
    for (const LabelledSetting& row : m_rows)
        if (spec.adapterDir.empty() || !comesWithAdapter(row))
            row.editor->write(spec);
}

void AdapterForm::readFrom(const RunSpec& spec)
{
    const QSignalBlocker quiet(this);
    const bool isAdapter = isAdapterRun(spec);
    m_folder->setPath(QString::fromStdString(spec.adapterDir));
    for (const LabelledSetting& row : m_rows)
        row.editor->read(isLayers(row) && !isAdapter ? RunSpec() : spec);
    folderChanged();
}

void AdapterForm::folderChanged()
{
    const bool isNew = m_folder->path().isEmpty();
    for (const LabelledSetting& row : m_rows) {
        const bool isOpen = isNew || !comesWithAdapter(row);
        row.label->setEnabled(isOpen);
        row.editor->widget()->setEnabled(isOpen);
    }
    m_folderNote->setVisible(!isNew);
}

void AdapterForm::showMore(bool shown)
{
    m_more->setVisible(shown);
    m_fold->setIcon(
        svgIcon(shown ? QStringLiteral("chevron-down") : QStringLiteral("chevron-right")));
}

void AdapterForm::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::LanguageChange)
        retranslateUi();
}

void AdapterForm::retranslateUi()
{
    for (const LabelledSetting& row : m_rows)
        row.retranslate();
    m_folderLabel->setText(tr("Adapter to go on from (optional)"));
    m_folder->setTexts(tr("Adapter to go on from"),
        tr("Empty: a new adapter. Or a folder with adapter_config.json."));
    m_folderNote->setText(tr("Rank, alpha and modules come with this adapter."));
    m_fold->setText(tr("More settings of the adapter"));
}

} // namespace mr::ui
