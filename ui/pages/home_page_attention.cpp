// The runs that need attention on HomePage, until the user leaves them as they are.

#include "pages/home_page.h"
#include "text/resume_words.h"
#include "text/units.h"
#include "widgets/message_label.h"

#include <QCryptographicHash>
#include <QHBoxLayout>
#include <QPushButton>
#include <QSettings>
#include <QVBoxLayout>

namespace mr::ui {

namespace {

constexpr qsizetype kMostLeft = 500;

// The setting that keeps which runs of a history were left as they are.
QString leftSetting(const std::string& database)
{
    const QByteArray path = QByteArray::fromStdString(database);
    return QStringLiteral("home/left-") +
           QString::fromLatin1(QCryptographicHash::hash(path, QCryptographicHash::Sha256).toHex());
}

// A run that went on and stopped again needs attention again.
QString leftKey(const RunRow& run)
{
    return QStringLiteral("%1 at %2").arg(run.id).arg(run.lastStep);
}

} // namespace

void HomePage::readLeft()
{
    m_left = QSettings().value(leftSetting(m_services.database)).toStringList();
}

bool HomePage::isLeft(const RunRow& run) const
{
    return m_left.contains(leftKey(run));
}

void HomePage::leave(const QString& key)
{
    m_left << key;
    if (m_left.size() > kMostLeft)
        m_left.removeFirst();
    QSettings().setValue(leftSetting(m_services.database), m_left);
    showRuns();
}

void HomePage::addAttention(QVBoxLayout* layout, const RunRow& run)
{
    auto* row = new QWidget(m_attention);
    auto* line = new QHBoxLayout(row);
    line->setContentsMargins(0, 0, 0, 0);
    const QString name = QString::fromStdString(run.name);
    QString sentence;
    if (run.status == RunStatus::Lost)
        sentence = tr("%1 stopped unexpectedly at step %2.").arg(name, countText(run.lastStep));
    else if (run.status == RunStatus::Failed)
        sentence = tr("%1 failed at step %2.").arg(name, countText(run.lastStep));
    else
        sentence = tr("%1 was stopped at step %2 of %3.")
                       .arg(name, countText(run.lastStep), countText(run.totalSteps));
    if (!run.exitReason.empty() && run.status != RunStatus::Stopped)
        sentence += QLatin1Char(' ') + QString::fromStdString(run.exitReason);
    auto* message = new MessageLabel(row);
    message->setContentsMargins(0, 4, 0, 0); // in line with the buttons' text
    message->show(
        run.status == RunStatus::Stopped ? MessageLabel::Kind::Info : MessageLabel::Kind::Warning,
        sentence);
    line->addWidget(message, 1);
    const auto button = [&](const QString& text, const QString& accessible) {
        auto* made = new QPushButton(text, row);
        made->setAccessibleName(accessible);
        line->addWidget(made, 0, Qt::AlignTop);
        return made;
    };
    if (run.resumable) {
        auto* resume = button(ResumeWords::action(run.startsAgain),
            run.startsAgain ? tr("Start %1 again").arg(name) : tr("Resume %1").arg(name));
        resume->setToolTip(ResumeWords::help(run.startsAgain));
        resume->setEnabled(!m_runActive);
        connect(resume, &QPushButton::clicked, this,
            [this, dir = QString::fromStdString(run.dir)] { emit resumeRequested(dir); });
    }
    auto* open = button(tr("Open"), tr("Open %1").arg(name));
    connect(
        open, &QPushButton::clicked, this, [this, id = run.id] { emit openRequested(id, false); });
    auto* leaveIt = button(tr("Leave it"), tr("Leave %1 as it is").arg(name));
    leaveIt->setToolTip(tr("Take the run off this list. It stays in the history."));
    // Queued: the button goes with its row.
    connect(
        leaveIt, &QPushButton::clicked, this, [this, key = leftKey(run)] { leave(key); },
        Qt::QueuedConnection);
    layout->addWidget(row);
}

} // namespace mr::ui
