#include "pages/scratch_folder.h"

#include "text/units.h"
#include "widgets/message_label.h"
#include "widgets/path_edit.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QProgressBar>
#include <QPushButton>
#include <QSignalBlocker>
#include <QVBoxLayout>

#include <cmath>

namespace mr::ui {

namespace {

constexpr int kFolderDelayMs = 150; // after the last key stroke
constexpr int kPollMs = 100;
constexpr int kProgressSteps = 1000;

} // namespace

ScratchFolderEdit::ScratchFolderEdit(const UiServices& services, QWidget* parent)
    : QWidget(parent)
    , m_services(services)
    , m_path(new PathEdit(PathEdit::Want::Folder, this))
    , m_facts(new MessageLabel(this))
    , m_warnings(new MessageLabel(this))
    , m_measure(new QPushButton(this))
    , m_progress(new QProgressBar(this))
    , m_measureMessage(new MessageLabel(this))
{
    m_path->setObjectName(QStringLiteral("scratchFolder"));
    m_measure->setObjectName(QStringLiteral("measureScratch"));
    m_progress->setRange(0, kProgressSteps);
    m_progress->setTextVisible(false);
    arrange();

    m_delay.setSingleShot(true);
    m_delay.setInterval(kFolderDelayMs);
    m_poll.setInterval(kPollMs);
    connect(&m_delay, &QTimer::timeout, this, &ScratchFolderEdit::inspect);
    connect(&m_poll, &QTimer::timeout, this, &ScratchFolderEdit::showMeasuring);
    connect(m_path, &PathEdit::pathChanged, this, &ScratchFolderEdit::pathChanged);
    connect(m_measure, &QPushButton::clicked, this, &ScratchFolderEdit::toggleMeasuring);
    retranslateUi();
    showInfo();
}

ScratchFolderEdit::~ScratchFolderEdit()
{
    stopMeasuring();
}

void ScratchFolderEdit::arrange()
{
    auto* measuring = new QHBoxLayout;
    measuring->addWidget(m_measure);
    measuring->addWidget(m_progress, 1);
    measuring->addStretch(0);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(4);
    layout->addWidget(m_path);
    layout->addWidget(m_facts);
    layout->addWidget(m_warnings);
    layout->addLayout(measuring);
    layout->addWidget(m_measureMessage);
}

std::string ScratchFolderEdit::folder() const
{
    return m_path->path().toStdString();
}

void ScratchFolderEdit::setFolder(const std::string& folder)
{
    const QSignalBlocker quiet(this);
    m_path->setPath(QString::fromStdString(folder));
}

QString ScratchFolderEdit::problem() const
{
    if (m_path->path().isEmpty() || (m_info && m_info->usable))
        return {};
    return settled() ? tr("The scratch folder cannot be used: see its message.")
                     : tr("The scratch folder is still being looked at; try again in a moment.");
}

void ScratchFolderEdit::pathChanged()
{
    stopMeasuring();
    m_info.reset();
    m_measureMessage->clear();
    m_delay.start();
    showInfo();
    emit changed();
}

void ScratchFolderEdit::inspect()
{
    const QString path = m_path->path();
    if (path.isEmpty()) {
        m_question.cancel();
        m_facts->clear();
        showInfo();
        return;
    }
    m_facts->show(MessageLabel::Kind::Busy, tr("Looking at the folder…"));
    m_question.ask([look = m_services.inspectScratch, p = path.toStdString()] { return look(p); },
        [this](const Result<ScratchInfo>& result) { inspected(result); });
}

void ScratchFolderEdit::inspected(const Result<ScratchInfo>& result)
{
    if (result.ok())
        m_info = Result<ScratchInfo>(result).value();
    else
        m_facts->show(MessageLabel::Kind::Error, QString::fromStdString(result.status().message()));
    showInfo();
    emit changed();
}

void ScratchFolderEdit::showInfo()
{
    const bool known = m_info.has_value();
    m_measure->setVisible(known);
    m_measure->setEnabled(known && m_info->usable);
    m_progress->setVisible(measuring());
    if (!known) {
        m_warnings->clear();
        if (m_path->path().isEmpty())
            m_facts->clear();
        return;
    }
    m_facts->showLines(MessageLabel::Kind::Info, factLines());
    QStringList warnings;
    for (const std::string& warning : m_info->warnings)
        warnings << QString::fromStdString(warning);
    m_warnings->showLines(
        m_info->usable ? MessageLabel::Kind::Warning : MessageLabel::Kind::Error, warnings);
}

QStringList ScratchFolderEdit::factLines() const
{
    const QString fileSystem = QString::fromStdString(m_info->fileSystem);
    const QString free = memoryText(static_cast<double>(m_info->freeBytes));
    QString first = m_info->drive.empty()
                        ? tr("%1, %2 free", "file system").arg(fileSystem, free)
                        : tr("%1 on %2, %3 free", "file system, drive")
                              .arg(fileSystem, QString::fromStdString(m_info->drive), free);
    if (m_info->temperatureCelsius)
        first += QStringLiteral(" · ") +
                 tr("%1 °C", "of a drive").arg(numberText(*m_info->temperatureCelsius, 0));
    const ScratchSpeed& speed = m_info->speed;
    if (speed.readBytesPerSecond <= 0.0)
        return {first, tr("Its speed is not known: measure it, and a plan can tell the time of a "
                          "step that uses it.")};
    return {first,
        tr("Measured: reads %1, writes %2; both at once %3 and %4")
            .arg(linkText(speed.readBytesPerSecond), linkText(speed.writeBytesPerSecond),
                linkText(speed.mixedReadBytesPerSecond), linkText(speed.mixedWriteBytesPerSecond))};
}

void ScratchFolderEdit::toggleMeasuring()
{
    if (measuring())
        stopMeasuring();
    else
        startMeasuring();
}

void ScratchFolderEdit::startMeasuring()
{
    m_measuring = std::make_shared<Measuring>();
    m_measureMessage->show(MessageLabel::Kind::Busy,
        tr("A file is filled, then read and written; it is removed at the end."));
    const auto work = [measure = m_services.measureScratch, state = m_measuring,
                          path = m_path->path().toStdString()] {
        ScratchMeasuring how;
        how.progress = [state](double share) { state->share = share; };
        how.cancelled = [state] { return state->stop.load(); };
        return measure(path, how);
    };
    const auto done = [this, state = m_measuring](const Result<ScratchSpeed>& result) {
        if (state == m_measuring) // not stopped meanwhile
            measured(result);
    };
    background<Result<ScratchSpeed>>(this, work, done);
    m_poll.start();
    retranslateUi();
    showMeasuring();
    m_progress->show();
}

void ScratchFolderEdit::stopMeasuring()
{
    if (!measuring())
        return;
    m_measuring->stop = true;
    m_measuring.reset();
    m_poll.stop();
    m_progress->hide();
    m_measureMessage->clear();
    retranslateUi();
}

void ScratchFolderEdit::measured(const Result<ScratchSpeed>& result)
{
    stopMeasuring();
    if (!result.ok()) {
        m_measureMessage->show(
            MessageLabel::Kind::Error, QString::fromStdString(result.status().message()));
        return;
    }
    m_info->speed = Result<ScratchSpeed>(result).value();
    showInfo();
    emit changed(); // the plan can tell times now
}

void ScratchFolderEdit::showMeasuring()
{
    m_progress->setValue(static_cast<int>(std::lround(kProgressSteps * m_measuring->share)));
}

void ScratchFolderEdit::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::LanguageChange) {
        retranslateUi();
        showInfo();
    }
}

void ScratchFolderEdit::retranslateUi()
{
    m_path->setTexts(
        tr("Scratch folder"), tr("On an SSD, for policies that keep state there. Drop it here."));
    m_path->setToolTip(tr("The run makes one file there and removes it at its end."));
    m_measure->setText(measuring() ? tr("Stop measuring") : tr("Measure its speed"));
    m_progress->setAccessibleName(tr("Progress of the measurement"));
}

} // namespace mr::ui
