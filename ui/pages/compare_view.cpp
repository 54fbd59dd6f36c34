#include "pages/compare_view.h"

#include "charts/chart_panel.h"
#include "charts/loss_overlay.h"
#include "charts/step_bars_panel.h"
#include "models/comparison_model.h"
#include "models/comparison_words.h"
#include "models/settings_model.h"
#include "models/stall_ledger_model.h"
#include "pages/compare_header.h"
#include "pages/run_tables.h"
#include "text/units.h"
#include "widgets/message_label.h"

#include <QCheckBox>
#include <QGridLayout>
#include <QResizeEvent>
#include <QScrollArea>
#include <QTableView>
#include <QVBoxLayout>

namespace mr::ui {

namespace {

constexpr int kScrollGap = 6; // between panels and scroll bar

} // namespace

CompareView::CompareView(QWidget* parent)
    : QWidget(parent)
    , m_header(new CompareHeader)
    , m_scroll(new QScrollArea)
    , m_panels(new QWidget)
    , m_grid(new QGridLayout(m_panels))
{
    makePanels();
    connect(m_header, &CompareHeader::openRequested, this, &CompareView::openRequested);
    m_grid->setContentsMargins(0, 0, kScrollGap, 0);
    m_grid->setSpacing(10);
    m_scroll->setWidget(m_panels);
    m_scroll->setWidgetResizable(true);
    m_scroll->setFrameShape(QFrame::NoFrame);
    m_scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_scroll->setFocusPolicy(Qt::NoFocus);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(10);
    layout->addWidget(m_header);
    layout->addWidget(m_scroll, 1);
    arrange(2);
}

void CompareView::makePanels()
{
    m_bars = new StepBarsPanel;
    m_losses = new LossOverlay;
    for (std::size_t run = 0; run < m_ledgers.size(); ++run) {
        auto* model = new StallLedgerModel(this);
        m_ledgers.at(run) = model;
        m_ledgerPanels.at(run) = new ChartPanel(
            run == 0 ? tr("Where the time went: first run") : tr("Where the time went: second run"),
            RunTables::ledger(*model));
        ChartExport ledger;
        ledger.baseName = QStringLiteral("stall-ledger-%1").arg(run + 1);
        ledger.csv = [model] { return model->csv(); };
        m_ledgerPanels.at(run)->setExport(std::move(ledger));
    }
    m_figures = new ComparisonModel(this);
    m_figuresPanel = new ChartPanel(tr("Figures"), RunTables::figures(*m_figures));
    ChartExport figures;
    figures.baseName = QStringLiteral("comparison");
    figures.csv = [this] { return m_figures->csv(); };
    m_figuresPanel->setExport(std::move(figures));
    makeSettings();
}

void CompareView::makeSettings()
{
    m_settings = new SettingsModel(this);
    m_settingsPanel = new ChartPanel(tr("Settings that differ"), RunTables::settings(*m_settings));
    m_allSettings = new QCheckBox(tr("Show all"));
    m_allSettings->setAccessibleName(tr("Show all settings"));
    m_allSettings->setToolTip(tr("Also those that are the same in both runs"));
    connect(m_allSettings, &QCheckBox::toggled, m_settings, &SettingsModel::setAllShown);
    m_settingsPanel->addTool(m_allSettings);
    ChartExport settings;
    settings.baseName = QStringLiteral("settings");
    settings.csv = [this] { return m_settings->csv(); };
    m_settingsPanel->setExport(std::move(settings));
}

void CompareView::arrange(int columns)
{
    if (columns == m_columns)
        return;
    m_columns = columns;
    for (QWidget* panel : std::initializer_list<QWidget*>{m_bars, m_ledgerPanels[0],
             m_ledgerPanels[1], m_losses, m_figuresPanel, m_settingsPanel})
        m_grid->removeWidget(panel);
    m_grid->addWidget(m_bars, 0, 0, 1, columns);
    const bool wide = columns == 2;
    m_grid->addWidget(m_ledgerPanels[0], 1, 0);
    m_grid->addWidget(m_ledgerPanels[1], wide ? 1 : 2, wide ? 1 : 0);
    m_grid->addWidget(m_losses, 3, 0);
    m_grid->addWidget(m_figuresPanel, wide ? 3 : 4, wide ? 1 : 0);
    m_grid->addWidget(m_settingsPanel, 5, 0, 1, columns);
    m_grid->setRowStretch(6, 1);
    // Equal, so that the two ledgers are.
    m_grid->setColumnStretch(0, 1);
    m_grid->setColumnStretch(1, wide ? 1 : 0);
}

void CompareView::resizeEvent(QResizeEvent* event)
{
    QWidget::resizeEvent(event);
    arrange(chartColumns(event->size().width()));
}

void CompareView::setRuns(const Runs& runs, const QString& waitingName)
{
    m_runs = runs;
    m_waitingName = waitingName;
    std::array<RunFigures, 2>& figures = m_shown;
    for (std::size_t run = 0; run < runs.size(); ++run)
        figures.at(run) = figuresOf(runs.at(run) ? *runs.at(run) : RunSnapshot{});
    if (!runs[1])
        figures[1].name = waitingName.toStdString();
    const auto labels = ComparisonWords::labels(figures[0], figures[1]);
    m_header->setRuns(runs, waitingName);
    if (runs[1])
        m_header->setProblem({});
    showSentence(figures);
    m_bars->setRuns({labels[0], ComparisonWords::exactness(figures[0]), figures[0].ledger},
        {labels[1], ComparisonWords::exactness(figures[1]), figures[1].ledger});
    for (int run = 0; run < 2; ++run)
        showLedger(run, figures.at(static_cast<std::size_t>(run)),
            labels.at(static_cast<std::size_t>(run)));
    m_losses->setRuns(runs, labels);
    m_figures->setRuns(figures[0], figures[1]);
    showSettings(labels);
}

void CompareView::showSettings(const std::array<QString, 2>& labels)
{
    const auto& [first, second] = m_runs;
    m_settingsPanel->setVisible(first && second);
    if (!first || !second)
        return;
    m_settings->setSettings(settingRows(first->run, second->run), labels);
    const int differing = m_settings->differing();
    m_settingsPanel->setReadout(
        differing == 0 ? tr("All %n setting(s) are the same", nullptr, m_settings->count())
                       : tr("%1 of %n setting(s)", nullptr, m_settings->count()).arg(differing));
}

void CompareView::setProblem(const QString& sentence)
{
    m_header->setProblem(sentence);
    showSentence(m_shown);
}

void CompareView::showSentence(const std::array<RunFigures, 2>& figures)
{
    const auto& [first, second] = m_runs;
    QString sentence;
    if (first && second)
        sentence = ComparisonWords::sentence(figures[0], figures[1], commonLoss(*first, *second));
    const bool dropped = !second && !m_header->problem()->text().isEmpty();
    if (sentence.isEmpty() && first && !second && !dropped && !m_waitingName.isEmpty())
        sentence = tr("“%1” starts when “%2” is done.")
                       .arg(m_waitingName, QString::fromStdString(first->run.name));
    if (sentence.isEmpty() && !dropped)
        sentence = tr("The comparison appears with the first steps.");
    m_header->setSentence(sentence);
}

void CompareView::showLedger(int run, const RunFigures& figures, const QString& label)
{
    const auto at = static_cast<std::size_t>(run);
    if (figures.ledger.steps > 0)
        m_ledgers.at(at)->setTotals(figures.ledger);
    else
        m_ledgers.at(at)->clear();
    m_ledgerPanels.at(at)->setReadout(
        figures.ledger.steps == 0
            ? tr("%1 · no steps yet").arg(label)
            : tr("%1 · all %2 steps").arg(label, countText(figures.ledger.steps)));
}

} // namespace mr::ui
