// HubServer: a hub on this machine's loopback that answers as a script says, or as a healthy one.
//
// Threads    Made and destroyed by the test's thread; its connections have threads of their own,
//            and the script is called by one at a time.
// Ownership  The destructor ends all connections.

#pragma once

#include "support/fake_hub.h"

#include <QTcpServer>
#include <QTcpSocket>

#include <atomic>
#include <future>
#include <list>
#include <memory>
#include <thread>

namespace mr::test {

struct ServedRequest {
    std::string method{};
    std::string target{};
    std::string body{};
    std::vector<HttpHeader> headers{};
    int count = 0; // of requests for this target, from 1

    std::optional<std::string> header(std::string_view name) const
    {
        return headerOf({0, headers}, name);
    }
};

class HubServer
{
public:
    // The answer; nothing: that of the repository.
    using Script = std::function<std::optional<FakeAnswer>(const ServedRequest& request)>;

    explicit HubServer(FakeRepo repo = {}, Script script = {})
        : m_repo(std::move(repo))
        , m_script(std::move(script))
    {
        std::promise<int> port;
        std::future<int> known = port.get_future();
        m_thread = std::jthread([this, &port] { listen(port); });
        m_port = known.get();
    }
    HubServer(const HubServer&) = delete;
    HubServer& operator=(const HubServer&) = delete;
    ~HubServer()
    {
        m_ends = true;
        m_thread.join();
        m_connections.clear();
    }

    int port() const { return m_port; }
    std::string address() const { return "http://127.0.0.1:" + std::to_string(m_port); }

    std::vector<ServedRequest> requests() const
    {
        const std::scoped_lock lock(m_mutex);
        return m_requests;
    }

private:
    class Acceptor : public QTcpServer
    {
    public:
        explicit Acceptor(HubServer& owner)
            : m_owner(owner)
        {
        }

    protected:
        void incomingConnection(qintptr handle) override
        {
            m_owner.m_connections.emplace_back(
                [&owner = m_owner, handle] { owner.serve(handle); }); // it outlives this object
        }

    private:
        HubServer& m_owner;
    };

    void listen(std::promise<int>& port)
    {
        Acceptor acceptor(*this);
        if (!acceptor.listen(QHostAddress::LocalHost))
            qFatal("cannot listen on the loopback");
        port.set_value(acceptor.serverPort());
        while (!m_ends)
            (void)acceptor.waitForNewConnection(10);
    }

    void serve(qintptr handle)
    {
        QTcpSocket socket;
        if (!socket.setSocketDescriptor(handle))
            return;
        QByteArray text;
        while (!m_ends && socket.state() == QAbstractSocket::ConnectedState) {
            const auto end = text.indexOf("\r\n\r\n");
            if (end < 0) {
                (void)socket.waitForReadyRead(10);
                text += socket.readAll();
                continue;
            }
            ServedRequest request = parsed(text.left(end));
            text.remove(0, end + 4);
            readBody(socket, text, request);
            note(request);
            if (!send(socket, answerTo(request)))
                return;
        }
    }

    static ServedRequest parsed(const QByteArray& text)
    {
        ServedRequest request;
        const QList<QByteArray> lines = text.split('\n');
        request.method = lines[0].split(' ').value(0).toStdString();
        request.target = lines[0].split(' ').value(1).toStdString();
        for (const QByteArray& line : lines.mid(1))
            request.headers.push_back({line.left(line.indexOf(':')).toLower().toStdString(),
                line.mid(line.indexOf(':') + 1).trimmed().toStdString()});
        return request;
    }

    void readBody(QTcpSocket& socket, QByteArray& text, ServedRequest& request) const
    {
        const qsizetype length = std::stoi(request.header("content-length").value_or("0"));
        while (
            text.size() < length && !m_ends && socket.state() == QAbstractSocket::ConnectedState) {
            (void)socket.waitForReadyRead(10);
            text += socket.readAll();
        }
        request.body = text.left(length).toStdString();
        text.remove(0, length);
    }

    void note(ServedRequest& request)
    {
        const std::scoped_lock lock(m_mutex);
        request.count = 1;
        for (const ServedRequest& other : m_requests)
            request.count += other.target == request.target ? 1 : 0;
        m_requests.push_back(request);
    }

    FakeAnswer answerTo(const ServedRequest& request)
    {
        const std::scoped_lock lock(m_scriptMutex);
        std::optional<FakeAnswer> answer;
        if (m_script)
            answer = m_script(request);
        return answer ? *answer : m_repo.answer(request.target, request.header("range"));
    }

    // False: the connection is over.
    bool send(QTcpSocket& socket, const FakeAnswer& answer)
    {
        std::string text = answer.raw;
        if (text.empty() && answer.status != 0) {
            text = "HTTP/1.1 " + std::to_string(answer.status) + " Words\r\n";
            HttpHead head{answer.status, answer.headers};
            if (answer.hasLength && !headerOf(head, "content-length"))
                head.headers.push_back({"content-length", std::to_string(answer.body.size())});
            for (const HttpHeader& header : head.headers)
                text += header.name + ": " + header.value + "\r\n";
            text += (answer.hasLength ? "" : "Connection: close\r\n");
            text += "\r\n" + answer.body;
        }
        socket.write(text.data(), static_cast<qint64>(text.size()));
        while (socket.bytesToWrite() > 0 && !m_ends && socket.waitForBytesWritten(1000)) {
        }
        while (answer.fault == HttpFault::Stalled && !m_ends &&
               socket.state() == QAbstractSocket::ConnectedState)
            (void)socket.waitForReadyRead(10);
        const bool isKept = answer.raw.empty() && answer.hasLength &&
                            answer.fault == HttpFault::None && answer.status != 0;
        if (!isKept) {
            socket.disconnectFromHost();
            if (socket.state() != QAbstractSocket::UnconnectedState)
                (void)socket.waitForDisconnected(1000);
        }
        return isKept;
    }

    const FakeRepo m_repo;
    const Script m_script;
    int m_port = 0;
    std::atomic<bool> m_ends = false;
    std::mutex m_scriptMutex;
    mutable std::mutex m_mutex;
    std::vector<ServedRequest> m_requests; // guarded by m_mutex
    std::list<std::jthread> m_connections; // of the listening thread, until that has ended
    std::jthread m_thread;
};

} // namespace mr::test
