#include "pages/scratch_section.h"

#include "pages/scratch_folder.h"
#include "widgets/byte_spin_box.h"
#include "widgets/message_label.h"
#include "widgets/path_edit.h"

#include <QEvent>
#include <QGridLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSignalBlocker>
#include <QVBoxLayout>

#include <algorithm>

namespace mr::ui {

namespace {

constexpr std::size_t kMostFolders = 8; // more drives than a PC has

} // namespace

ScratchSection::ScratchSection(const UiServices& services, QWidget* parent)
    : QWidget(parent)
    , m_services(services)
    , m_pathLabel(new QLabel(this))
    , m_list(new QVBoxLayout)
    , m_hint(new MessageLabel(this))
    , m_add(new QPushButton(this))
    , m_spaceLabel(new QLabel(this))
    , m_space(new ByteSpinBox(this))
    , m_writesLabel(new QLabel(this))
    , m_writes(new ByteSpinBox(this))
{
    m_add->setObjectName(QStringLiteral("addScratch"));
    m_spaceLabel->setBuddy(m_space);
    m_writesLabel->setBuddy(m_writes);
    arrange();
    setCount(1);
    m_pathLabel->setBuddy(m_folders.front()->pathEdit()->edit());
    connect(m_add, &QPushButton::clicked, this, [this] {
        setCount(m_folders.size() + 1);
        m_folders.back()->pathEdit()->edit()->setFocus();
        folderChanged();
    });
    for (auto* box : {m_space, m_writes})
        connect(box, &QDoubleSpinBox::valueChanged, this, &ScratchSection::changed);
    retranslateUi();
    folderChanged();
}

void ScratchSection::arrange()
{
    m_list->setSpacing(8);
    auto* adding = new QHBoxLayout;
    adding->addWidget(m_add);
    adding->addStretch(1);
    auto* amounts = new QGridLayout;
    amounts->setHorizontalSpacing(16);
    amounts->setVerticalSpacing(4);
    amounts->addWidget(m_spaceLabel, 0, 0);
    amounts->addWidget(m_writesLabel, 0, 1);
    amounts->addWidget(m_space, 1, 0);
    amounts->addWidget(m_writes, 1, 1);
    amounts->setColumnStretch(0, 1);
    amounts->setColumnStretch(1, 1);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(4);
    layout->addWidget(m_pathLabel);
    layout->addLayout(m_list);
    layout->addWidget(m_hint);
    layout->addLayout(adding);
    layout->addLayout(amounts);
}

void ScratchSection::setCount(std::size_t count)
{
    while (m_folders.size() > count) {
        m_folders.back()->deleteLater();
        m_folders.back()->hide();
        m_folders.pop_back();
    }
    while (m_folders.size() < count) {
        auto* folder = new ScratchFolderEdit(m_services, this);
        connect(folder, &ScratchFolderEdit::changed, this, &ScratchSection::folderChanged);
        connect(folder, &ScratchFolderEdit::changed, this, &ScratchSection::changed);
        m_list->addWidget(folder);
        m_folders.push_back(folder);
    }
    orderTabs();
}

// Focus order is top to bottom. Without this, folders made last would come last.
void ScratchSection::orderTabs()
{
    QWidget* last = nullptr;
    const auto next = [&](QWidget* widget) {
        if (last != nullptr)
            setTabOrder(last, widget);
        last = widget;
    };
    for (ScratchFolderEdit* folder : m_folders)
        for (auto* widget : {static_cast<QWidget*>(folder->pathEdit()->edit()),
                 folder->pathEdit()->lastInFocusOrder(),
                 static_cast<QWidget*>(folder->measureButton())})
            next(widget);
    for (auto* widget : {static_cast<QWidget*>(m_add), static_cast<QWidget*>(m_space),
             static_cast<QWidget*>(m_writes)})
        next(widget);
}

void ScratchSection::writeTo(RunSpec& spec) const
{
    spec.diskPaths.clear();
    for (const ScratchFolderEdit* folder : m_folders)
        if (!folder->folder().empty())
            spec.diskPaths.push_back(folder->folder());
    spec.diskBytes = spec.diskPaths.empty() ? 0 : m_space->bytes();
    spec.maxDiskWriteBytes = m_writes->bytes();
}

void ScratchSection::readFrom(const RunSpec& spec)
{
    const QSignalBlocker quiet(this);
    setCount(std::max<std::size_t>(spec.diskPaths.size(), 1));
    for (std::size_t i = 0; i < m_folders.size(); ++i)
        m_folders[i]->setFolder(i < spec.diskPaths.size() ? spec.diskPaths[i] : std::string());
    m_space->setBytes(spec.diskBytes);
    m_writes->setBytes(spec.maxDiskWriteBytes);
    folderChanged();
}

QString ScratchSection::problem() const
{
    for (const ScratchFolderEdit* folder : m_folders)
        if (!folder->problem().isEmpty())
            return folder->problem();
    return twice();
}

bool ScratchSection::settled() const
{
    return std::ranges::all_of(m_folders, [](const auto* folder) { return folder->settled(); });
}

bool ScratchSection::measuring() const
{
    return std::ranges::any_of(m_folders, [](const auto* folder) { return folder->measuring(); });
}

PathEdit* ScratchSection::pathEdit() const
{
    for (const ScratchFolderEdit* folder : m_folders)
        if (!folder->problem().isEmpty())
            return folder->pathEdit();
    return m_folders.front()->pathEdit();
}

// A folder is taken out by clearing its line.
void ScratchSection::folderChanged()
{
    const bool isLastEmpty = m_folders.back()->folder().empty();
    m_add->setVisible(!isLastEmpty && m_folders.size() < kMostFolders);
    m_space->setEnabled(!m_folders.front()->folder().empty() || !isLastEmpty);
    const QString same = twice();
    const QString shared = same.isEmpty() ? sharedDrive() : same;
    if (shared.isEmpty())
        m_hint->clear();
    else
        m_hint->show(
            same.isEmpty() ? MessageLabel::Kind::Warning : MessageLabel::Kind::Error, shared);
}

// Error about a folder that is named twice, by the real paths of those that were looked at.
QString ScratchSection::twice() const
{
    for (auto folder = m_folders.begin(); folder != m_folders.end(); ++folder) {
        const auto isSame = [&](const ScratchFolderEdit* other) {
            return other->info() && (*folder)->info() &&
                   other->info()->path == (*folder)->info()->path;
        };
        if (std::any_of(m_folders.begin(), folder, isSame))
            return tr("The scratch folder %1 is named twice; name each folder once.")
                .arg(QString::fromStdString((*folder)->info()->path));
    }
    return {};
}

QString ScratchSection::sharedDrive() const
{
    for (auto folder = m_folders.begin(); folder != m_folders.end(); ++folder) {
        const auto isSame = [&](const ScratchFolderEdit* other) {
            return other->info() && (*folder)->info() && !other->info()->drive.empty() &&
                   other->info()->drive == (*folder)->info()->drive;
        };
        if (std::any_of(m_folders.begin(), folder, isSame))
            return tr("Two of these folders are on %1. A second drive makes a run faster, a second "
                      "folder on the same one does not.")
                .arg(QString::fromStdString((*folder)->info()->drive));
    }
    return {};
}

void ScratchSection::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::LanguageChange) {
        retranslateUi();
        folderChanged();
    }
}

void ScratchSection::retranslateUi()
{
    m_pathLabel->setText(tr("Scratch folder (optional)"));
    m_add->setText(tr("Add a folder on another drive"));
    m_add->setToolTip(tr("Drives work side by side: each holds as much as its speed allows."));
    m_spaceLabel->setText(tr("Scratch space"));
    m_space->setAccessibleName(tr("Scratch space"));
    m_space->setToolTip(tr("The most bytes the run may hold in all scratch folders together."));
    m_space->setSpecialValueText(tr("Automatic"));
    m_writesLabel->setText(tr("Disk writes"));
    m_writes->setAccessibleName(tr("Disk writes"));
    m_writes->setToolTip(tr("The most bytes the whole run may write to disk, checkpoints included: "
                            "writing wears an SSD. A run that would write more is refused."));
    m_writes->setSpecialValueText(tr("No limit"));
}

} // namespace mr::ui
