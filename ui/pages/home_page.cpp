#include "pages/home_page.h"

#include "bridge/background.h"
#include "models/outcome_words.h"
#include "models/run_progress.h"
#include "models/run_status.h"
#include "text/svg_icon.h"
#include "text/units.h"
#include "widgets/card.h"
#include "widgets/message_label.h"

#include <QEvent>
#include <QFileInfo>
#include <QGridLayout>
#include <QLabel>
#include <QPushButton>
#include <QScrollArea>
#include <QVBoxLayout>

#include <algorithm>
#include <cmath>

namespace mr::ui {

namespace {

constexpr int kHomeMargin = 16;
constexpr int kRecentRuns = 8;
constexpr int kAttentionRuns = 3;
constexpr int kIconExtent = 16;

bool needsAttention(const RunRow& run)
{
    return run.status == RunStatus::Failed || run.status == RunStatus::Lost ||
           (run.status == RunStatus::Stopped && run.resumable);
}

bool sampleIsThere(const std::string& dir)
{
    const RunSpec spec = sampleSpec(dir);
    const auto exists = [](const std::string& path) {
        return QFileInfo::exists(QString::fromStdString(path));
    };
    return !dir.empty() && exists(spec.modelDir + "/config.json") &&
           exists(spec.data.front().path) && exists(spec.evalData.front().path);
}

// Replaces the one widget that shows a list; returns the new, empty one.
QWidget* replaced(Card* card, QWidget*& old)
{
    delete old;
    old = new QWidget(card);
    card->body()->insertWidget(0, old);
    return old;
}

} // namespace

RunSpec sampleSpec(const std::string& sampleDir)
{
    RunSpec spec;
    spec.name = "sample";
    spec.modelDir = sampleDir + "/model";
    spec.data.push_back({sampleDir + "/train.jsonl", DataFormat::Auto, {}});
    spec.evalData.push_back({sampleDir + "/eval.jsonl", DataFormat::Auto, {}});
    spec.evalAnswers = 40;
    spec.learningRate = 5e-4; // small models take larger steps than the default's 2e-5
    return spec;
}

HomePage::HomePage(const UiServices& services, QWidget* parent)
    : QWidget(parent)
    , m_services(services)
{
    readLeft();
    build();
    connect(m_sampleButton, &QPushButton::clicked, this,
        [this] { emit sampleRequested(sampleSpec(m_services.sampleDir)); });
    connect(m_newRun, &QPushButton::clicked, this, &HomePage::newRunRequested);
    connect(m_history, &QPushButton::clicked, this, &HomePage::historyRequested);
    retranslateUi();
    refreshMachine();
}

void HomePage::build()
{
    auto* content = new QWidget;
    m_title = new QLabel(content);
    QFont font = m_title->font();
    font.setPointSizeF(font.pointSizeF() * 1.7);
    font.setBold(true);
    m_title->setFont(font);
    m_subtitle = makeMutedLabel(content);

    m_sampleCard = new Card(content);
    m_sampleText = new QLabel(m_sampleCard);
    m_sampleText->setWordWrap(true);
    m_sampleMessage = new MessageLabel(m_sampleCard);
    m_sampleButton = new QPushButton(svgIcon(QStringLiteral("play")), QString(), m_sampleCard);
    m_sampleButton->setObjectName(QStringLiteral("startSample"));
    m_sampleCard->body()->addWidget(m_sampleText);
    m_sampleCard->body()->addWidget(m_sampleMessage);
    m_sampleCard->body()->addStretch(1);
    m_sampleCard->body()->addWidget(m_sampleButton, 0, Qt::AlignLeft);

    m_machineCard = new Card(content);
    m_attentionCard = new Card(content);
    m_recentCard = new Card(content);
    m_newRun = new QPushButton(svgIcon(QStringLiteral("new-run")), QString(), m_recentCard);
    m_history = new QPushButton(svgIcon(QStringLiteral("history")), QString(), m_recentCard);
    m_recentCard->header()->addWidget(m_newRun);
    m_recentCard->header()->addWidget(m_history);

    auto* grid = new QGridLayout(content);
    grid->setContentsMargins(kHomeMargin, kHomeMargin, kHomeMargin, kHomeMargin);
    grid->setSpacing(kHomeMargin);
    auto* heading = new QVBoxLayout;
    heading->setSpacing(2);
    heading->addWidget(m_title);
    heading->addWidget(m_subtitle);
    grid->addLayout(heading, 0, 0, 1, 2);
    grid->addWidget(m_sampleCard, 2, 0);
    grid->addWidget(m_machineCard, 2, 1);
    grid->addWidget(m_attentionCard, 3, 0, 1, 2);
    grid->addWidget(m_recentCard, 4, 0, 1, 2);
    grid->setColumnStretch(0, 1);
    grid->setColumnStretch(1, 1);
    grid->setRowStretch(5, 1);

    auto* area = new QScrollArea(this);
    area->setWidget(content);
    area->setWidgetResizable(true);
    area->setFrameShape(QFrame::NoFrame);
    area->setFocusPolicy(Qt::NoFocus);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(area);
}

void HomePage::setRunActive(bool active)
{
    m_runActive = active;
    showSample();
    showRuns();
}

void HomePage::refreshMachine()
{
    struct Seen {
        MachineInfo machine;
        bool sample = false;
    };
    background<Seen>(
        this,
        [look = m_services.inspectMachine, dir = m_services.sampleDir] {
            return Seen{look(), sampleIsThere(dir)};
        },
        [this](const Seen& seen) {
            m_machine = seen.machine;
            m_sampleThere = seen.sample;
            showMachine();
            showSample();
        });
}

void HomePage::setRuns(const RunRowsPtr& runs)
{
    m_runs = runs;
    showRuns();
}

void HomePage::addFact(QGridLayout* grid, const QString& name, const QString& value)
{
    const int row = grid->rowCount();
    auto* label = makeMutedLabel(m_machineCard);
    label->setWordWrap(false);
    label->setText(name);
    auto* text = new QLabel(value, m_machineCard);
    text->setWordWrap(true);
    text->setAlignment(Qt::AlignLeft | Qt::AlignTop);
    text->setTextFormat(Qt::PlainText);
    grid->addWidget(label, row, 0, Qt::AlignTop);
    grid->addWidget(text, row, 1);
}

void HomePage::showMachine()
{
    auto* grid = new QGridLayout(replaced(m_machineCard, m_facts));
    grid->setContentsMargins(0, 0, 0, 0);
    grid->setColumnStretch(1, 1);
    grid->setHorizontalSpacing(kHomeMargin);
    if (!m_machine) {
        grid->addWidget(new QLabel(tr("Looking at this PC…"), m_facts), 0, 0);
        m_facts->show();
        return;
    }
    const MachineInfo& pc = *m_machine;
    const auto memory = [](std::uint64_t bytes) { return memoryText(static_cast<double>(bytes)); };
    addFact(grid, tr("Processor"), QString::fromStdString(pc.cpuName));
    addFact(grid, tr("Cores"),
        tr("%1 physical, %2 threads, %3")
            .arg(countText(pc.physicalCores), countText(pc.threads),
                QString::fromStdString(pc.instructionSet)));
    addFact(grid, tr("Memory"),
        tr("%1, %2 available").arg(memory(pc.memoryBytes), memory(pc.availableBytes)));
    addFact(grid, tr("Disk"), tr("%1 free for runs").arg(memory(pc.diskFreeBytes)));
    if (pc.gpus.empty())
        addFact(grid, tr("GPU"), tr("None found: models are trained on the processor."));
    for (const GpuInfo& gpu : pc.gpus) {
        QString text = tr("%1, %2").arg(QString::fromStdString(gpu.name), memory(gpu.memoryBytes));
        if (!gpu.note.empty())
            text += QLatin1Char('\n') + QString::fromStdString(gpu.note);
        addFact(grid, tr("GPU"), text);
    }
    m_facts->show(); // now, not with the next turn of the event loop
}

void HomePage::showSample()
{
    m_sampleButton->setEnabled(m_sampleThere && !m_runActive);
    if (m_machine && !m_sampleThere)
        m_sampleMessage->show(MessageLabel::Kind::Warning,
            tr("The sample project is not installed: %1 has no model and questions. Start with a "
               "model of your own on the New run page.")
                .arg(m_services.sampleDir.empty() ? tr("its folder")
                                                  : QString::fromStdString(m_services.sampleDir)));
    else if (m_machine && m_runActive)
        m_sampleMessage->show(MessageLabel::Kind::Info, tr("A run is active; one run at a time."));
    else
        m_sampleMessage->clear();
}

void HomePage::showRuns()
{
    auto* attention = new QVBoxLayout(replaced(m_attentionCard, m_attention));
    attention->setContentsMargins(0, 0, 0, 0);
    auto* recent = new QGridLayout(replaced(m_recentCard, m_recent));
    recent->setContentsMargins(0, 0, 0, 0);
    recent->setHorizontalSpacing(kHomeMargin);
    recent->setColumnStretch(1, 1);
    int troubled = 0;
    if (m_runs) {
        for (const RunRow& run : *m_runs) {
            if (needsAttention(run) && !isLeft(run) && troubled++ < kAttentionRuns)
                addAttention(attention, run);
        }
        for (std::size_t i = 0; i < std::min<std::size_t>(m_runs->size(), kRecentRuns); ++i)
            addRunRow(recent, (*m_runs)[i]);
    }
    m_attentionCard->setVisible(troubled > 0);
    const bool none = !m_runs || m_runs->empty();
    m_history->setVisible(!none);
    if (none) {
        auto* label = makeMutedLabel(m_recent);
        label->setText(tr("No runs yet. Fine-tune the sample above, or start a new run with a "
                          "model folder and a dataset of your own."));
        recent->addWidget(label, 0, 0, 1, 2);
    }
    m_attention->show();
    m_recent->show();
    QWidget* before = m_sampleButton;
    const auto next = [&before](QWidget* widget) {
        setTabOrder(before, widget);
        before = widget;
    };
    for (auto* button : m_attention->findChildren<QPushButton*>())
        next(button);
    next(m_newRun);
    next(m_history);
    for (auto* button : m_recent->findChildren<QPushButton*>())
        next(button);
}

void HomePage::addRunRow(QGridLayout* grid, const RunRow& run)
{
    const int row = grid->rowCount();
    const bool live = !isEnded(run);
    const ShownStatus status = OutcomeWords::status(run);
    auto* icon = new QLabel(m_recent);
    icon->setPixmap(RunStatusText::picture(status, palette(), kIconExtent, devicePixelRatioF()));
    const QString name = QString::fromStdString(run.name);
    auto* title = new QLabel(name, m_recent);
    title->setTextFormat(Qt::PlainText);
    auto* word = new QLabel(RunStatusText::word(status), m_recent);
    word->setToolTip(OutcomeWords::sentence(run));
    auto* steps = new QLabel(
        tr("step %1 of %2").arg(countText(run.lastStep), countText(run.totalSteps)), m_recent);
    auto* loss = new QLabel(
        std::isfinite(run.lastLoss) ? tr("loss %1").arg(numberText(run.lastLoss, 4)) : QString(),
        m_recent);
    auto* when = makeMutedLabel(m_recent);
    when->setWordWrap(false);
    when->setText(momentText(run.startedMs > 0 ? run.startedMs : run.createdMs));
    auto* open = new QPushButton(tr("Open"), m_recent);
    open->setAccessibleName(tr("Open %1").arg(name));
    connect(open, &QPushButton::clicked, this,
        [this, id = run.id, live] { emit openRequested(id, live); });
    int column = 0;
    for (QWidget* cell : {static_cast<QWidget*>(icon), static_cast<QWidget*>(title),
             static_cast<QWidget*>(word), static_cast<QWidget*>(steps), static_cast<QWidget*>(loss),
             static_cast<QWidget*>(when), static_cast<QWidget*>(open)})
        grid->addWidget(cell, row, column++);
}

void HomePage::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::LanguageChange)
        retranslateUi();
    if (event->type() == QEvent::PaletteChange)
        showRuns();
}

void HomePage::retranslateUi()
{
    m_title->setText(QStringLiteral("Millrace"));
    m_subtitle->setText(tr("Fine-tune language models larger than the memory of your GPU."));
    m_sampleCard->setTitle(tr("Sample project"));
    m_sampleText->setText(
        tr("A small language model and a set of everyday and arithmetic questions come with "
           "Millrace. Fine-tune it to see a whole run: the loss falls on the Live page, and the "
           "run is kept in the history."));
    m_sampleButton->setText(tr("Fine-tune the sample"));
    m_machineCard->setTitle(tr("This PC"));
    m_attentionCard->setTitle(tr("Needs attention"));
    m_recentCard->setTitle(tr("Recent runs"));
    m_newRun->setText(tr("New run"));
    m_history->setText(tr("All runs"));
    showMachine();
    showSample();
    showRuns();
}

} // namespace mr::ui
