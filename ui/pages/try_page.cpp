#include "pages/try_page.h"

#include "pages/try_column.h"
#include "pages/try_form.h"
#include "widgets/card.h"

#include <QComboBox>
#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QVBoxLayout>

#include <algorithm>
#include <utility>

namespace mr::ui {

namespace {

constexpr int kTryMargin = 16;
using Checkpoints = Result<std::vector<CheckpointRow>>;

} // namespace

TryPage::TryPage(const UiServices& services, QWidget* parent)
    : QWidget(parent)
    , m_services(services)
    , m_asker(new TryAsker(services, this))
    , m_form(new TryForm)
    , m_title(new QLabel)
    , m_hint(makeMutedLabel())
{
    build();
    for (int i = 0; i < TryAsker::kColumns; ++i) {
        TryColumn* column = m_columns.at(static_cast<std::size_t>(i));
        connect(column, &TryColumn::runChosen, this,
            [this, i](qint64 runId) { readCheckpoints(i, runId); });
        connect(column, &TryColumn::chosen, this, &TryPage::enable);
        connect(m_asker, &TryAsker::busyChanged, column, &TryColumn::setBusy);
    }
    connect(m_form, &TryForm::askRequested, this, &TryPage::ask);
    connect(m_form, &TryForm::stopRequested, m_asker, &TryAsker::stop);
    connect(m_asker, &TryAsker::busyChanged, m_form, &TryForm::setBusy);
    connect(m_asker, &TryAsker::changed, this, [this](int column, const TryProgress& progress) {
        m_columns.at(static_cast<std::size_t>(column))->setProgress(progress);
    });
    retranslateUi();
    enable();
}

TryPage::~TryPage() = default;

void TryPage::build()
{
    QFont font = m_title->font();
    font.setPointSizeF(font.pointSizeF() * 1.7);
    font.setBold(true);
    m_title->setFont(font);
    m_columns = {new TryColumn(TryColumn::Side::Base), new TryColumn(TryColumn::Side::Tuned)};
    auto* heading = new QVBoxLayout;
    heading->setSpacing(2);
    heading->addWidget(m_title);
    heading->addWidget(m_hint);
    auto* answers = new QHBoxLayout;
    answers->setSpacing(kTryMargin);
    for (TryColumn* column : m_columns)
        answers->addWidget(column, 1);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(kTryMargin, kTryMargin, kTryMargin, kTryMargin);
    layout->setSpacing(kTryMargin);
    layout->addLayout(heading);
    layout->addWidget(m_form);
    layout->addLayout(answers, 1);
}

void TryPage::setLiveRun(LiveRun live)
{
    m_asker->setLiveRun(std::move(live));
}

void TryPage::setRuns(const RunRowsPtr& runs)
{
    m_runs = runs;
    fillChoices();
}

void TryPage::setLive(qint64 runId)
{
    if (m_live != 0 && runId == 0)
        m_asker->runEnded();
    m_live = runId;
    m_liveIsNew = runId != 0;
    fillChoices();
}

// The usual one of either side comes first.
void TryPage::fillChoices()
{
    if (!m_runs)
        return;
    const std::vector<TryChoice> models = TryChoices::models(*m_runs);
    const std::vector<TryChoice> runs = TryChoices::runs(*m_runs, m_live);
    std::vector<TryChoice> left = models;
    left.insert(left.end(), runs.begin(), runs.end());
    std::vector<TryChoice> right = runs;
    right.insert(right.end(), models.begin(), models.end());
    base()->setChoices(left);
    // A base alone is no tuned model: the right side stays empty and says so.
    tuned()->setChoices(runs.empty() ? std::vector<TryChoice>() : right);
    if (m_liveIsNew && !runs.empty() && runs.front().isLive && !m_asker->busy()) {
        m_liveIsNew = false;
        tryRun(m_live); // people want to look at the run just started
    }
    enable();
}

void TryPage::tryRun(qint64 runId)
{
    tuned()->choose(runId);
    if (!m_runs)
        return;
    const auto run = std::find_if(
        m_runs->begin(), m_runs->end(), [runId](const RunRow& row) { return row.id == runId; });
    if (run == m_runs->end())
        return;
    const int at = base()->models()->findData(QString::fromStdString(run->modelPath));
    if (at >= 0)
        base()->models()->setCurrentIndex(at);
}

void TryPage::readCheckpoints(int column, qint64 runId)
{
    if (runId == 0 || !m_services.openReader)
        return;
    qint64 best = -1;
    for (const RunRow& run : m_runs ? *m_runs : std::vector<RunRow>())
        best = run.id == runId ? run.bestEvalStep : best;
    background<Checkpoints>(
        this,
        [open = m_services.openReader, database = m_services.database, runId]() -> Checkpoints {
            Result<std::unique_ptr<RunReader>> reader = open(database);
            MR_TRY(reader.status());
            return reader.value()->checkpoints(runId);
        },
        [this, column, runId, best](const Checkpoints& rows) {
            if (rows.ok())
                m_columns.at(static_cast<std::size_t>(column))
                    ->setCheckpoints(runId, Result(rows).value(), best);
        });
}

void TryPage::ask()
{
    m_asker->ask(m_form->prompt(), {base()->target(), tuned()->target()});
}

void TryPage::enable()
{
    m_form->setAskable(!base()->target().isNobody() || !tuned()->target().isNobody());
}

void TryPage::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    if (event->type() != QEvent::LanguageChange)
        return;
    retranslateUi();
    fillChoices();
}

void TryPage::retranslateUi()
{
    m_title->setText(tr("Try it"));
    m_hint->setText(tr("One prompt, asked of two models one after the other with the same seed. A "
                       "run that goes on answers between two steps and trains on as before."));
}

} // namespace mr::ui
