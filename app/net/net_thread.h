// NetThread: a thread with Qt's event loop and network, which carries out requests.
//
// Threads    Made and destroyed by one thread; start(), goOn() and abort() from any.
// Ownership  Requests that run when it is destroyed end with it.

#pragma once

#include "app/net/exchange.h"
#include "core/hub/http_transport.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

namespace mr::app {

class NetThread
{
public:
    NetThread();
    NetThread(const NetThread&) = delete;
    NetThread& operator=(const NetThread&) = delete;
    ~NetThread();

    void start(std::uint64_t id, const HttpRequest& request, std::shared_ptr<Exchange> exchange);
    void goOn(std::uint64_t id); // its exchange has room again
    void abort(std::uint64_t id);

private:
    class Worker;

    void post(std::function<void(Worker&)> task);

    Worker* m_worker = nullptr; // lives in the thread
    std::thread m_thread;
};

} // namespace mr::app
