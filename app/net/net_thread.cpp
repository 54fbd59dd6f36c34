#include "app/net/net_thread.h"

#include <QCoreApplication>
#include <QEventLoop>
#include <QFile>
#include <QNetworkAccessManager>
#include <QNetworkProxy>
#include <QNetworkReply>
#include <QNetworkRequest>

#include <fcntl.h>

#include <algorithm>
#include <clocale>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace mr::app {
namespace {

constexpr qint64 kReadBytes = 64 << 10;
constexpr qint64 kSocketBytes = 1 << 20; // that Qt holds before it stops reading

// A QCoreApplication where the program has none, as Qt's event loops want it. It changes the
// process's locale, which is put back; what Qt tells its developers goes to nobody.
class OwnApplication
{
public:
    OwnApplication()
    {
        if (QCoreApplication::instance() != nullptr)
            return;
        const std::string locale = std::setlocale(LC_ALL, nullptr);
        qInstallMessageHandler([](QtMsgType, const QMessageLogContext&, const QString&) {});
        m_application.emplace(m_count, m_arguments);
        (void)std::setlocale(LC_ALL, locale.c_str());
    }

private:
    int m_count = 1;
    char m_name[9] = "millrace";
    char* m_arguments[2] = {m_name, nullptr};
    std::optional<QCoreApplication> m_application;
};

HttpFault faultOf(QNetworkReply::NetworkError error, int status)
{
    switch (error) {
    case QNetworkReply::NoError:
        return HttpFault::None;
    case QNetworkReply::HostNotFoundError:
        return HttpFault::Host;
    case QNetworkReply::ConnectionRefusedError:
    case QNetworkReply::TimeoutError:
    case QNetworkReply::TemporaryNetworkFailureError:
    case QNetworkReply::NetworkSessionFailedError:
        return HttpFault::Refused;
    case QNetworkReply::SslHandshakeFailedError:
        return HttpFault::Tls;
    case QNetworkReply::RemoteHostClosedError:
        return HttpFault::Cut;
    case QNetworkReply::OperationCanceledError:
        return HttpFault::Stopped;
    case QNetworkReply::UnknownNetworkError:
        return status == 0 ? HttpFault::Refused : HttpFault::Cut;
    default:
        return status >= 400 ? HttpFault::None : HttpFault::Other; // the status says it
    }
}

QNetworkRequest requestOf(const HttpRequest& request)
{
    QNetworkRequest made(QUrl(QString::fromStdString(request.url), QUrl::StrictMode));
    made.setAttribute(
        QNetworkRequest::RedirectPolicyAttribute, QNetworkRequest::ManualRedirectPolicy);
    made.setAttribute(QNetworkRequest::Http2AllowedAttribute, false); // bounded buffers
    made.setAttribute(QNetworkRequest::CookieLoadControlAttribute, QNetworkRequest::Manual);
    made.setAttribute(QNetworkRequest::CookieSaveControlAttribute, QNetworkRequest::Manual);
    made.setAttribute(QNetworkRequest::AuthenticationReuseAttribute, QNetworkRequest::Manual);
    made.setRawHeader("User-Agent", "millrace/" MR_NET_VERSION);
    for (const HttpHeader& header : request.headers)
        made.setRawHeader(
            QByteArray::fromStdString(header.name), QByteArray::fromStdString(header.value));
    return made;
}

int statusOf(const QNetworkReply& reply)
{
    return reply.attribute(QNetworkRequest::HttpStatusCodeAttribute).toInt();
}

HttpHead headOfReply(const QNetworkReply& reply)
{
    HttpHead head{statusOf(reply), {}};
    for (const QNetworkReply::RawHeaderPair& pair : reply.rawHeaderPairs())
        head.headers.push_back({pair.first.toLower().toStdString(), pair.second.toStdString()});
    return head;
}

} // namespace

// Lives in the thread, and all its functions run there.
class NetThread::Worker : public QObject
{
public:
    Worker() { m_manager.setProxy(QNetworkProxy::NoProxy); }

    ~Worker() override
    {
        while (!m_running.empty())
            abort(m_running.begin()->first);
    }

    void start(std::uint64_t id, const HttpRequest& request, std::shared_ptr<Exchange> exchange)
    {
        QNetworkReply* reply = ask(request);
        if (reply == nullptr) {
            exchange->end({HttpFault::Other, request.file.string() + ": cannot be read"});
            return;
        }
        reply->setReadBufferSize(kSocketBytes);
        connect(reply, &QNetworkReply::uploadProgress, this, [exchange](qint64 sent, qint64) {
            if (sent > 0) // 0 comes again at the end
                exchange->putSent(static_cast<std::uint64_t>(sent));
        });
        m_running[id] = {reply, std::move(exchange), false};
        connect(reply, &QNetworkReply::metaDataChanged, this, [this, id] { readHead(id); });
        connect(reply, &QNetworkReply::readyRead, this, [this, id] { goOn(id); });
        connect(reply, &QNetworkReply::finished, this, [this, id] { finish(id); });
    }

    void goOn(std::uint64_t id)
    {
        const auto found = m_running.find(id);
        if (found == m_running.end())
            return;
        readHead(id);
        for (std::size_t room = found->second.exchange->room(); room > 0;
             room = found->second.exchange->room()) {
            QByteArray piece =
                found->second.reply->read(std::min(kReadBytes, static_cast<qint64>(room)));
            if (piece.isEmpty())
                return;
            found->second.exchange->putPiece(std::move(piece));
        }
    }

    void abort(std::uint64_t id)
    {
        const auto found = m_running.find(id);
        if (found == m_running.end())
            return;
        const Running running = std::move(found->second);
        m_running.erase(found); // finished() comes within abort()
        running.exchange->end({HttpFault::Stopped, {}});
        running.reply->abort();
        running.reply->deleteLater();
    }

    QEventLoop& loop() { return m_loop; }

private:
    struct Running {
        QNetworkReply* reply = nullptr;
        std::shared_ptr<Exchange> exchange{};
        bool hasHead = false;
    };

    // Null: the file of its body cannot be read.
    QNetworkReply* ask(const HttpRequest& request)
    {
        const QNetworkRequest made = requestOf(request);
        if (request.method == HttpMethod::Get)
            return m_manager.get(made);
        if (request.method == HttpMethod::Head)
            return m_manager.head(made);
        if (request.file.empty())
            return m_manager.post(made, QByteArray::fromStdString(request.text));
        const int opened = ::open(request.file.c_str(), O_RDONLY | O_CLOEXEC);
        auto file = std::make_unique<QFile>();
        if (opened < 0 || !file->open(opened, QIODevice::ReadOnly, QFileDevice::AutoCloseHandle))
            return nullptr;
        QNetworkReply* reply = m_manager.post(made, file.get());
        file.release()->setParent(reply);
        return reply;
    }

    void readHead(std::uint64_t id)
    {
        const auto found = m_running.find(id);
        if (found == m_running.end() || found->second.hasHead ||
            statusOf(*found->second.reply) == 0)
            return;
        found->second.hasHead = true;
        found->second.exchange->putHead(headOfReply(*found->second.reply));
    }

    // The rest that Qt holds is bounded, and goes past the exchange's limit.
    void finish(std::uint64_t id)
    {
        const auto found = m_running.find(id);
        if (found == m_running.end())
            return;
        readHead(id);
        const Running running = std::move(found->second);
        m_running.erase(found);
        if (QByteArray rest = running.reply->readAll(); !rest.isEmpty() && running.hasHead)
            running.exchange->putPiece(std::move(rest));
        const HttpFault fault = faultOf(running.reply->error(), statusOf(*running.reply));
        running.exchange->end({fault,
            fault == HttpFault::None ? std::string() : running.reply->errorString().toStdString()});
        running.reply->deleteLater();
    }

    QNetworkAccessManager m_manager;
    QEventLoop m_loop;
    std::map<std::uint64_t, Running> m_running;
};

NetThread::NetThread()
{
    std::promise<Worker*> ready;
    std::future<Worker*> worker = ready.get_future();
    m_thread = std::thread([&ready] {
        const OwnApplication application;
        Worker own;
        QMetaObject::invokeMethod(
            &own, [&] { ready.set_value(&own); }, Qt::QueuedConnection); // the loop runs
        (void)own.loop().exec();
    });
    m_worker = worker.get();
}

NetThread::~NetThread()
{
    post([](Worker& worker) { worker.loop().quit(); });
    m_thread.join();
}

void NetThread::post(std::function<void(Worker&)> task)
{
    Worker* worker = m_worker;
    QMetaObject::invokeMethod(
        worker, [worker, task = std::move(task)] { task(*worker); }, Qt::QueuedConnection);
}

void NetThread::start(
    std::uint64_t id, const HttpRequest& request, std::shared_ptr<Exchange> exchange)
{
    post([id, request, exchange = std::move(exchange)](
             Worker& worker) { worker.start(id, request, exchange); });
}

void NetThread::goOn(std::uint64_t id)
{
    post([id](Worker& worker) { worker.goOn(id); });
}

void NetThread::abort(std::uint64_t id)
{
    post([id](Worker& worker) { worker.abort(id); });
}

} // namespace mr::app
