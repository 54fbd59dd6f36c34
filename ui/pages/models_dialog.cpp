#include "pages/models_dialog.h"

#include "models/local_model_table.h"
#include "models/word_filter.h"
#include "pages/export_dialog.h"
#include "pages/get_model_dialog.h"
#include "text/units.h"
#include "widgets/card.h"
#include "widgets/message_label.h"

#include <QDir>
#include <QFileDialog>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QPushButton>
#include <QSettings>
#include <QStackedLayout>
#include <QTableView>
#include <QVBoxLayout>

#include <utility>

namespace mr::ui {

namespace {

const QString kFoldersKey = QStringLiteral("models/folders");

QStringList keptFolders()
{
    return QSettings().value(kFoldersKey).toStringList();
}

std::vector<std::string> foldersToLookIn()
{
    std::vector<std::string> folders;
    for (const QString& folder : keptFolders())
        folders.push_back(folder.toStdString());
    return folders;
}

} // namespace

ModelsDialog::ModelsDialog(const UiServices& services, QWidget* parent)
    : QDialog(parent)
    , m_services(services)
    , m_models(new LocalModelTable(this))
    , m_filter(new WordFilter(LocalModelTable::ValueRole, LocalModelTable::SearchRole, this))
    , m_filterLine(new QLineEdit)
    , m_forget(new QPushButton(tr("Forget folder")))
    , m_folders(new QMenu(this))
    , m_table(new QTableView)
    , m_empty(new QLabel)
    , m_counts(makeMutedLabel())
    , m_reason(new MessageLabel)
    , m_faults(new MessageLabel)
{
    setObjectName(QStringLiteral("models"));
    setAttribute(Qt::WA_DeleteOnClose);
    setWindowTitle(tr("Models on this PC"));
    auto* middle = new QWidget;
    m_stack = new QStackedLayout(middle);
    makeTable();
    m_stack->addWidget(m_table);
    m_stack->addWidget(makeEmpty());
    auto* buttons = new QWidget;
    makeButtons(buttons);
    auto* layout = new QVBoxLayout(this);
    layout->addWidget(makeHead());
    layout->addWidget(middle, 1);
    layout->addWidget(m_counts);
    layout->addWidget(m_reason);
    layout->addWidget(m_faults);
    layout->addWidget(buttons);
    resize(980, 560);
    fillFolders();
    look();
}

ModelsDialog::~ModelsDialog() = default;

QWidget* ModelsDialog::makeHead()
{
    auto* head = new QWidget;
    auto* add = new QPushButton(tr("Add folder…"));
    m_filterLine->setPlaceholderText(tr("Filter: name, architecture, licence"));
    m_filterLine->setAccessibleName(tr("Filter of the models"));
    m_filterLine->setClearButtonEnabled(true);
    m_forget->setMenu(m_folders);
    auto* layout = new QHBoxLayout(head);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(m_filterLine, 1);
    layout->addWidget(add);
    layout->addWidget(m_forget);
    for (QPushButton* button : {add, m_forget})
        button->setAutoDefault(false);
    connect(add, &QPushButton::clicked, this, &ModelsDialog::askForFolder);
    connect(m_filterLine, &QLineEdit::textChanged, m_filter, &WordFilter::setText);
    connect(m_filterLine, &QLineEdit::textChanged, this, &ModelsDialog::showCounts);
    return head;
}

QWidget* ModelsDialog::makeEmpty()
{
    m_empty->setWordWrap(true);
    m_empty->setTextFormat(Qt::PlainText);
    m_empty->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_empty->setAlignment(Qt::AlignLeft | Qt::AlignTop);
    m_empty->setMargin(kTargetSize / 2);
    return m_empty;
}

void ModelsDialog::makeTable()
{
    m_filter->setSourceModel(m_models);
    m_table->setModel(m_filter);
    m_table->setAccessibleName(windowTitle());
    m_table->setSelectionBehavior(QTableView::SelectRows);
    m_table->setSelectionMode(QTableView::SingleSelection);
    m_table->setEditTriggers(QTableView::NoEditTriggers);
    m_table->setAlternatingRowColors(true);
    m_table->setShowGrid(false);
    m_table->setWordWrap(false);
    m_table->setTabKeyNavigation(false);
    m_table->setSortingEnabled(true);
    m_table->verticalHeader()->hide();
    m_table->verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 10);
    m_table->horizontalHeader()->setHighlightSections(false);
    m_table->horizontalHeader()->setStretchLastSection(true);
    m_table->sortByColumn(LocalModelTable::Use, Qt::AscendingOrder);
    connect(m_table, &QTableView::doubleClicked, this, &ModelsDialog::take);
    connect(m_table->selectionModel(), &QItemSelectionModel::selectionChanged, this,
        &ModelsDialog::showSelected);
}

void ModelsDialog::makeButtons(QWidget* row)
{
    m_use = new QPushButton(tr("Use"));
    auto* get = new QPushButton(tr("Get a model…"));
    m_export = new QPushButton(tr("Export…"));
    m_export->setToolTip(tr("Writes it for other programs"));
    auto* close = new QPushButton(tr("Close"));
    for (QPushButton* button : {get, m_export, close})
        button->setAutoDefault(false);
    m_use->setDefault(true);
    m_use->setToolTip(tr("Puts its folder into the run"));
    auto* layout = new QHBoxLayout(row);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(get);
    layout->addWidget(m_export);
    layout->addStretch(1);
    layout->addWidget(m_use);
    layout->addWidget(close);
    connect(m_use, &QPushButton::clicked, this, &ModelsDialog::take);
    connect(get, &QPushButton::clicked, this, &ModelsDialog::getOne);
    connect(m_export, &QPushButton::clicked, this, &ModelsDialog::exportOne);
    connect(close, &QPushButton::clicked, this, &QDialog::reject);
}

void ModelsDialog::look()
{
    m_faults->clear();
    m_reason->show(MessageLabel::Kind::Busy, tr("Looking for models…"));
    m_question.ask(
        [find = m_services.findModels, folders = foldersToLookIn()] { return find(folders); },
        [this](LocalModels found) { showFound(std::move(found)); });
    for (QPushButton* button : {m_use, m_export})
        button->setEnabled(false);
}

void ModelsDialog::showFound(LocalModels found)
{
    m_found = std::move(found);
    m_models->setModels(m_found.models);
    QStringList faults;
    for (const LookedPlace& place : m_found.places) {
        const QString path = QString::fromStdString(place.path);
        if (!place.fault.empty())
            faults << tr("%1: %2", "place, fault").arg(path, QString::fromStdString(place.fault));
        else if (!place.exists && place.store == ModelStore::Folder)
            faults << tr("%1: there is no such folder").arg(path);
    }
    if (!faults.isEmpty())
        m_faults->showLines(MessageLabel::Kind::Warning, faults);
    m_empty->setText(emptyText());
    m_stack->setCurrentIndex(m_found.models.empty() ? 1 : 0);
    m_table->resizeColumnsToContents();
    const int widest = width() / 3;
    for (int column = 0; column < LocalModelTable::ColumnCount; ++column)
        if (m_table->columnWidth(column) > widest)
            m_table->setColumnWidth(column, widest);
    if (m_filter->rowCount() > 0)
        m_table->selectRow(0);
    showCounts();
    showSelected();
}

QString ModelsDialog::emptyText() const
{
    if (!m_found.models.empty())
        return {};
    QStringList lines{tr("No models were found. These places were looked at:"), QString()};
    for (const LookedPlace& place : m_found.places) {
        const QString line = QStringLiteral("%1  %2").arg(
            LocalModelTable::storeName(place.store), QString::fromStdString(place.path));
        lines << (place.exists ? line : tr("%1 (is not there)").arg(line));
    }
    lines << QString()
          << tr("Get a model, or add a folder that has some in it. Model folders with a "
                "config.json and GGUF files are found up to four folders below it.");
    return lines.join(QLatin1Char('\n'));
}

void ModelsDialog::showCounts()
{
    const int all = m_models->rowCount();
    const int shown = m_filter->rowCount();
    m_counts->setVisible(all > 0);
    const QString bytes = memoryText(static_cast<double>(m_found.bytes));
    m_counts->setText(shown == all ? tr("%n model(s), %1 on the disk", nullptr, all).arg(bytes)
                                   : tr("%1 of %2 models shown").arg(shown).arg(all));
}

const LocalModel* ModelsDialog::selected() const
{
    const QModelIndexList rows = m_table->selectionModel()->selectedRows();
    return rows.isEmpty() ? nullptr : m_models->model(m_filter->mapToSource(rows.front()).row());
}

void ModelsDialog::showSelected()
{
    if (busy())
        return;
    const LocalModel* model = selected();
    const bool isTrainable = model != nullptr && LocalModelTable::isTrainable(*model);
    m_use->setEnabled(isTrainable);
    m_export->setEnabled(isTrainable || (model != nullptr && model->isAdapter));
    if (model == nullptr) {
        m_reason->clear();
        return;
    }
    QStringList lines{QString::fromStdString(model->reason)};
    if (!model->path.empty())
        lines << QString::fromStdString(model->path);
    m_reason->showLines(isTrainable ? MessageLabel::Kind::Good : MessageLabel::Kind::Info, lines);
}

void ModelsDialog::take()
{
    const LocalModel* model = selected();
    if (busy() || model == nullptr || !LocalModelTable::isTrainable(*model))
        return;
    emit chosen(QString::fromStdString(model->path));
    accept();
}

void ModelsDialog::getOne()
{
    auto* dialog = new GetModelDialog(m_services, this);
    connect(dialog, &GetModelDialog::fetched, this, &ModelsDialog::look);
    connect(dialog, &GetModelDialog::chosen, this, [this](const QString& path) {
        emit chosen(path);
        accept();
    });
    dialog->open();
}

void ModelsDialog::exportOne()
{
    const LocalModel* model = selected();
    if (busy() || model == nullptr || !m_export->isEnabled())
        return;
    const QString path = QString::fromStdString(model->path);
    const QString name = QString::fromStdString(model->name).section(QLatin1Char('/'), -1);
    (new ExportDialog(m_services, {path, name, false, model->isAdapter}, this))->open();
}

void ModelsDialog::askForFolder()
{
    const QString folder =
        QFileDialog::getExistingDirectory(this, tr("Look for models below"), QDir::homePath());
    if (!folder.isEmpty())
        addFolder(folder);
}

void ModelsDialog::addFolder(const QString& folder)
{
    QStringList folders = keptFolders();
    if (!folders.contains(folder))
        folders << folder;
    QSettings().setValue(kFoldersKey, folders);
    fillFolders();
    look();
}

void ModelsDialog::forgetFolder(const QString& folder)
{
    QStringList folders = keptFolders();
    folders.removeAll(folder);
    QSettings().setValue(kFoldersKey, folders);
    fillFolders();
    look();
}

void ModelsDialog::fillFolders()
{
    m_folders->clear();
    for (const QString& folder : keptFolders()) {
        QString shown = folder;
        shown.replace(QLatin1Char('&'), QLatin1String("&&"));
        connect(m_folders->addAction(shown), &QAction::triggered, this,
            [this, folder] { forgetFolder(folder); });
    }
    m_forget->setVisible(!m_folders->isEmpty());
}

} // namespace mr::ui
