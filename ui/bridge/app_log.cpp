#include "bridge/app_log.h"

#include <QDateTime>
#include <QDir>
#include <QFile>
#include <QFileInfo>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>

namespace mr::ui {

namespace {

constexpr qint64 kMostBytes = qint64{1} << 20;

std::mutex g_mutex;
int g_file = -1;                       // guarded by g_mutex
QtMessageHandler g_terminal = nullptr; // guarded by g_mutex

} // namespace

AppLog::AppLog(const QString& path)
{
    QDir().mkpath(QFileInfo(path).absolutePath()); // the first start of all
    if (QFile(path).size() > kMostBytes) {
        QFile::remove(path + QStringLiteral(".old"));
        QFile::rename(path, path + QStringLiteral(".old"));
    }
    m_file = ::open(QFile::encodeName(path).constData(),
        O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    m_before = qInstallMessageHandler(&AppLog::take);
    const std::scoped_lock lock(g_mutex);
    g_file = m_file;
    g_terminal = m_before;
}

AppLog::~AppLog()
{
    qInstallMessageHandler(m_before);
    const std::scoped_lock lock(g_mutex);
    g_file = -1;
    g_terminal = nullptr;
    if (m_file >= 0)
        (void)::close(m_file);
}

void AppLog::write(const QString& line)
{
    const QString now = QDateTime::currentDateTimeUtc().toString(Qt::ISODateWithMs);
    const QByteArray text =
        (now + QLatin1Char(' ') + line.simplified() + QLatin1Char('\n')).toUtf8();
    const std::scoped_lock lock(g_mutex);
    if (g_file >= 0 &&
        ::write(g_file, text.constData(), static_cast<std::size_t>(text.size())) < 0) {
        // The line is lost. The run itself reports a full disk.
    }
}

void AppLog::take(QtMsgType type, const QMessageLogContext& context, const QString& message)
{
    if (type != QtDebugMsg)
        write(message);
    QtMessageHandler terminal = nullptr;
    {
        const std::scoped_lock lock(g_mutex);
        terminal = g_terminal;
    }
    if (terminal)
        terminal(type, context, message);
}

QString AppLog::tail(const QString& path, std::int64_t bytes)
{
    QFile file(path);
    if (!file.open(QIODevice::ReadOnly))
        return {};
    const qint64 from = std::max<qint64>(0, file.size() - bytes);
    file.seek(from);
    QByteArray text = file.read(bytes);
    if (from > 0)
        text = text.mid(text.indexOf('\n') + 1);
    return QString::fromUtf8(text);
}

} // namespace mr::ui
