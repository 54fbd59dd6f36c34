#include "pages/row_checks_dialog.h"

#include "models/checked_row_table.h"
#include "text/row_check_words.h"
#include "text/units.h"
#include "widgets/card.h"
#include "widgets/message_label.h"

#include <QFileInfo>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QListWidget>
#include <QPushButton>
#include <QSplitter>
#include <QTableView>
#include <QVBoxLayout>

#include <atomic>
#include <utility>

namespace mr::ui {

namespace {

constexpr int kProgressMs = 200;
constexpr std::size_t kRowsWithText = 500; // of a finding: more are read by nobody
constexpr std::size_t kTextBytes = 240;

RowList rowsOf(const std::vector<CheckedRow>& found, std::size_t most = SIZE_MAX)
{
    std::vector<std::int64_t> rows;
    for (const CheckedRow& row : found)
        if (rows.size() < most)
            rows.push_back(row.row);
    return RowList(std::move(rows));
}

bool containsAll(const RowList& list, const std::vector<CheckedRow>& rows)
{
    for (const CheckedRow& row : rows)
        if (!list.contains(row.row))
            return false;
    return true;
}

} // namespace

struct RowChecksDialog::Work {
    std::atomic<std::int64_t> rows = 0;
    std::atomic<bool> stop = false;
};

RowChecksDialog::RowChecksDialog(const UiServices& services, CheckRequest request, QWidget* parent)
    : QDialog(parent)
    , m_services(services)
    , m_request(std::move(request))
    , m_before(std::exchange(m_request.source.excluded, {}))
    , m_fileBytes(
          static_cast<quint64>(QFileInfo(QString::fromStdString(m_request.source.path)).size()))
    , m_message(new MessageLabel)
    , m_lengths(makeMutedLabel())
    , m_findings(new QListWidget)
    , m_help(makeMutedLabel())
    , m_rows(new CheckedRowTable(this))
    , m_table(new QTableView)
    , m_count(makeMutedLabel())
    , m_apply(new QPushButton(tr("Leave out the ticked rows")))
{
    setObjectName(QStringLiteral("rowChecks"));
    setAttribute(Qt::WA_DeleteOnClose);
    setWindowTitle(
        tr("Rows of %1").arg(QFileInfo(QString::fromStdString(m_request.source.path)).fileName()));
    auto* layout = new QVBoxLayout(this);
    layout->addWidget(m_message);
    layout->addWidget(m_lengths);
    layout->addWidget(makeMiddle(), 1);
    layout->addWidget(m_count);
    layout->addWidget(makeButtons());
    resize(980, 560);
    m_timer.setInterval(kProgressMs);
    connect(&m_timer, &QTimer::timeout, this, &RowChecksDialog::look);
    connect(m_findings, &QListWidget::currentRowChanged, this, &RowChecksDialog::showFinding);
    connect(m_findings, &QListWidget::itemChanged, this, &RowChecksDialog::showCount);
    run();
}

RowChecksDialog::~RowChecksDialog()
{
    if (m_work)
        m_work->stop = true;
}

void RowChecksDialog::makeTable()
{
    m_table->setModel(m_rows);
    m_table->setAccessibleName(tr("Rows of the finding"));
    m_table->setSelectionBehavior(QTableView::SelectRows);
    m_table->setEditTriggers(QTableView::NoEditTriggers);
    m_table->setAlternatingRowColors(true);
    m_table->setShowGrid(false);
    m_table->setWordWrap(false);
    m_table->setTabKeyNavigation(false);
    m_table->verticalHeader()->hide();
    m_table->verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 10);
    m_table->horizontalHeader()->setHighlightSections(false);
    m_table->horizontalHeader()->setStretchLastSection(true);
}

QWidget* RowChecksDialog::makeMiddle()
{
    makeTable();
    m_findings->setAccessibleName(tr("Findings"));
    m_lengths->hide();
    m_help->setWordWrap(true);
    auto* right = new QWidget;
    auto* layout = new QVBoxLayout(right);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(m_help);
    layout->addWidget(m_table, 1);
    auto* split = new QSplitter;
    split->setChildrenCollapsible(false);
    split->addWidget(m_findings);
    split->addWidget(right);
    split->setStretchFactor(1, 1);
    split->setSizes({300, 680});
    return split;
}

QWidget* RowChecksDialog::makeButtons()
{
    auto* row = new QWidget;
    auto* close = new QPushButton(tr("Close"));
    auto* layout = new QHBoxLayout(row);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addStretch(1);
    layout->addWidget(m_apply);
    layout->addWidget(close);
    m_apply->setEnabled(false);
    for (QPushButton* button : {m_apply, close})
        button->setAutoDefault(false);
    connect(close, &QPushButton::clicked, this, &QDialog::reject);
    connect(m_apply, &QPushButton::clicked, this, [this] {
        emit chosen(ticked(), m_fileBytes);
        accept();
    });
    return row;
}

void RowChecksDialog::run()
{
    m_work = std::make_shared<Work>();
    look();
    m_timer.start();
    CheckRequest request = m_request;
    request.onRows = [work = m_work](std::int64_t rows) {
        work->rows = rows;
        return !work->stop;
    };
    background<std::shared_ptr<Result<DataChecks>>>(
        this,
        [check = m_services.checkDataset, request] {
            return std::make_shared<Result<DataChecks>>(check(request));
        },
        [this](const std::shared_ptr<Result<DataChecks>>& done) { show(std::move(*done)); });
}

void RowChecksDialog::look()
{
    m_message->show(MessageLabel::Kind::Busy,
        tr("Checking: %1 rows so far…").arg(countText(m_work->rows.load())));
}

void RowChecksDialog::show(Result<DataChecks> done)
{
    m_work.reset();
    m_timer.stop();
    if (!done.ok()) {
        m_message->show(MessageLabel::Kind::Error, QString::fromStdString(done.status().message()));
        return;
    }
    m_checks = std::move(done).value();
    for (std::size_t check = 0; check < kRowChecks; ++check)
        if (!m_checks.found[check].empty())
            addFinding(static_cast<RowCheck>(check), m_checks.found[check]);
    const bool isClean = m_findings->count() == 0;
    QStringList lines{
        isClean ? tr("%1 rows were checked, and nothing was found.").arg(countText(m_checks.rows))
                : tr("%1 rows were checked. Tick what a run leaves out; the file stays as it is.")
                      .arg(countText(m_checks.rows))};
    for (const std::string& problem : m_checks.problems)
        lines << QString::fromStdString(problem);
    const bool isGood = isClean && m_checks.problems.empty();
    m_message->showLines(isGood ? MessageLabel::Kind::Good : MessageLabel::Kind::Info, lines);
    showLengths();
    m_findings->setCurrentRow(0);
    m_apply->setEnabled(!isClean || !m_before.empty());
    showCount();
}

void RowChecksDialog::addFinding(RowCheck check, const std::vector<CheckedRow>& rows)
{
    auto* item = new QListWidgetItem(
        tr("%1: %2", "finding, number of rows")
            .arg(RowCheckWords::name(check), countText(static_cast<std::int64_t>(rows.size()))));
    item->setData(Qt::UserRole, static_cast<int>(check));
    item->setToolTip(RowCheckWords::help(check));
    item->setFlags(item->flags() | Qt::ItemIsUserCheckable);
    item->setCheckState(containsAll(m_before, rows) ? Qt::Checked : Qt::Unchecked);
    m_findings->addItem(item);
}

// The length of the run, and the shortest power of two that cuts nothing.
void RowChecksDialog::showLengths()
{
    if (m_checks.lengths.empty())
        return;
    std::int64_t whole = m_checks.seqLen;
    while (effectOfLength(m_checks.lengths, whole).cutRows > 0)
        whole *= 2;
    const LengthEffect effect = effectOfLength(m_checks.lengths, m_checks.seqLen);
    const double share = static_cast<double>(effect.kept) / static_cast<double>(effect.tokens);
    QString text = tr("A sequence length of %1 keeps %2 of the tokens and cuts %n row(s).", nullptr,
        static_cast<int>(effect.cutRows))
                       .arg(countText(m_checks.seqLen), percentText(100.0 * share));
    if (whole > m_checks.seqLen)
        text += QLatin1Char(' ') + tr("One of %1 cuts none.").arg(countText(whole));
    m_lengths->setText(text);
    m_lengths->show();
}

void RowChecksDialog::showFinding()
{
    const QListWidgetItem* item = m_findings->currentItem();
    if (item == nullptr)
        return;
    const auto check = static_cast<RowCheck>(item->data(Qt::UserRole).toInt());
    const std::vector<CheckedRow>& found = m_checks.of(check);
    m_help->setText(RowCheckWords::help(check));
    m_rows->setRows(found);
    for (const int column : {CheckedRowTable::Row, CheckedRowTable::Line, CheckedRowTable::Why})
        m_table->resizeColumnToContents(column);
    m_table->setColumnHidden(CheckedRowTable::Line, found.front().line == 0);
    m_table->setColumnHidden(CheckedRowTable::Other, found.front().other == 0);
    m_table->setColumnHidden(CheckedRowTable::Text, check == RowCheck::Unreadable);
    m_texts.ask([read = m_services.readRowTexts, source = m_request.source,
                    rows = rowsOf(found, kRowsWithText)] { return read(source, rows, kTextBytes); },
        [this](Result<std::vector<RowText>> texts) {
            if (texts.ok())
                m_rows->setTexts(texts.value());
            else
                m_message->show(
                    MessageLabel::Kind::Error, QString::fromStdString(texts.status().message()));
        });
}

RowList RowChecksDialog::ticked() const
{
    RowList rows;
    for (int i = 0; i < m_findings->count(); ++i) {
        const QListWidgetItem* item = m_findings->item(i);
        if (item->checkState() == Qt::Checked)
            rows.add(rowsOf(m_checks.of(static_cast<RowCheck>(item->data(Qt::UserRole).toInt()))));
    }
    return rows;
}

void RowChecksDialog::showCount()
{
    const std::int64_t count = ticked().count();
    m_count->setText(tr("%n row(s) will be left out.", nullptr, static_cast<int>(count)));
}

} // namespace mr::ui
