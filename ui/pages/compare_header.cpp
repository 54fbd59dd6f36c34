#include "pages/compare_header.h"

#include "models/outcome_words.h"
#include "models/run_figures.h"
#include "models/run_progress.h"
#include "models/run_status.h"
#include "text/theme_colors.h"
#include "text/units.h"
#include "widgets/card.h"
#include "widgets/message_label.h"

#include <QEvent>
#include <QGridLayout>
#include <QLabel>
#include <QPushButton>
#include <QVBoxLayout>

namespace mr::ui {

namespace {

constexpr int kHeaderIconExtent = 16;
constexpr int kRuns = 2;

} // namespace

CompareHeader::CompareHeader(QWidget* parent)
    : QFrame(parent)
    , m_sentence(new QLabel)
    , m_problem(new MessageLabel)
    , m_differences(new MessageLabel)
{
    setAccessibleName(tr("Comparison"));
    QFont large = m_sentence->font();
    large.setBold(true);
    large.setPointSizeF(large.pointSizeF() * 1.2);
    m_sentence->setFont(large);
    m_sentence->setObjectName(QStringLiteral("comparisonSentence"));
    m_sentence->setWordWrap(true);
    m_sentence->setTextFormat(Qt::PlainText);
    m_sentence->setTextInteractionFlags(Qt::TextSelectableByMouse);
    auto* grid = new QGridLayout;
    grid->setHorizontalSpacing(8);
    grid->setVerticalSpacing(4);
    grid->setColumnStretch(2, 1);
    for (int run = 0; run < kRuns; ++run)
        m_lines.at(static_cast<std::size_t>(run)) = makeLine(grid, run);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(12, 10, 12, 10);
    layout->setSpacing(8);
    layout->addWidget(m_sentence);
    layout->addLayout(grid);
    layout->addWidget(m_problem);
    layout->addWidget(m_differences);
}

CompareHeader::Line CompareHeader::makeLine(QGridLayout* grid, int row)
{
    const Line line{
        new QLabel, new QLabel, new QLabel, new QLabel, new QPushButton(tr("All charts"))};
    line.name->setTextFormat(Qt::PlainText);
    line.name->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
    line.open->setToolTip(tr("Show this run with all its charts"));
    grid->addWidget(line.icon, row, 0);
    grid->addWidget(line.state, row, 1);
    grid->addWidget(line.name, row, 2);
    grid->addWidget(line.progress, row, 3, Qt::AlignRight | Qt::AlignVCenter);
    grid->addWidget(line.open, row, 4);
    connect(line.open, &QPushButton::clicked, this, [this, row] { openRun(row); });
    return line;
}

void CompareHeader::openRun(int run)
{
    if (const RunSnapshotPtr& snapshot = m_runs.at(static_cast<std::size_t>(run)))
        emit openRequested(snapshot->run.id, !isEnded(snapshot->run));
}

void CompareHeader::setRuns(const std::array<RunSnapshotPtr, 2>& runs, const QString& waitingName)
{
    m_runs = runs;
    m_waitingName = waitingName;
    for (int run = 0; run < kRuns; ++run)
        showLine(run);
    showDifferences();
}

void CompareHeader::showLine(int run)
{
    const RunSnapshotPtr& snapshot = m_runs.at(static_cast<std::size_t>(run));
    const Line& line = m_lines.at(static_cast<std::size_t>(run));
    const bool dropped = !snapshot && !m_problem->text().isEmpty();
    const ShownStatus status = snapshot  ? OutcomeWords::status(snapshot->run)
                               : dropped ? RunStatus::Stopped
                                         : RunStatus::Queued;
    const QString name = snapshot ? QString::fromStdString(snapshot->run.name) : m_waitingName;
    line.icon->setPixmap(
        RunStatusText::picture(status, palette(), kHeaderIconExtent, devicePixelRatioF()));
    QPalette colored = palette();
    colored.setColor(QPalette::WindowText, RunStatusText::color(status, palette()));
    line.state->setPalette(colored);
    line.state->setText(dropped ? tr("Not started") : RunStatusText::word(status));
    line.state->setToolTip(snapshot ? OutcomeWords::sentence(snapshot->run) : QString());
    line.name->setText(name);
    line.name->setToolTip(name);
    line.progress->setText(snapshot ? tr("step %1 of %2")
                                          .arg(countText(progressOf(*snapshot).step),
                                              countText(snapshot->run.totalSteps))
                                    : QString());
    line.open->setEnabled(snapshot != nullptr);
    line.open->setAccessibleName(tr("All charts of %1").arg(name));
    const bool unknown = !snapshot && name.isEmpty(); // its snapshot is on its way
    for (QWidget* widget : {static_cast<QWidget*>(line.icon), static_cast<QWidget*>(line.state)})
        widget->setVisible(!unknown);
}

void CompareHeader::showDifferences()
{
    const auto& [first, second] = m_runs;
    QStringList lines;
    if (first && second) {
        if (const QStringList all = otherDifferences(first->run, second->run); !all.isEmpty())
            lines << tr("Not only the policy differs. %1.").arg(all.join(QStringLiteral("; ")));
        if (first->run.simulatedLink || second->run.simulatedLink)
            lines << tr("The link is simulated: its speed is set, not measured.");
    }
    m_differences->showLines(MessageLabel::Kind::Warning, lines);
}

void CompareHeader::setSentence(const QString& sentence)
{
    m_sentence->setText(sentence);
    m_sentence->setVisible(!sentence.isEmpty());
}

void CompareHeader::setProblem(const QString& sentence)
{
    m_problem->show(MessageLabel::Kind::Error, sentence);
    for (int run = 0; run < kRuns; ++run)
        showLine(run);
}

QString CompareHeader::sentence() const
{
    return m_sentence->text();
}

void CompareHeader::changeEvent(QEvent* event)
{
    QFrame::changeEvent(event);
    if (event->type() != QEvent::PaletteChange)
        return;
    for (int run = 0; run < kRuns; ++run)
        showLine(run);
}

void CompareHeader::paintEvent(QPaintEvent*)
{
    paintCard(*this, themeColors(palette()).border);
}

} // namespace mr::ui
