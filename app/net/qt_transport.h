// HttpTransport by Qt's network, on a thread of its own.
//
// HTTP/1.1, no redirects, no cookies, no proxy (the variables https_proxy and the like are not
// read), certificates checked against the system's. It needs a QCoreApplication; where the process
// has none, it makes one on its thread and keeps it.
//
// Threads    send() from any thread, several at once.

#pragma once

#include "core/hub/http_transport.h"

#include <memory>

namespace mr::app {

std::unique_ptr<HttpTransport> makeQtTransport();

} // namespace mr::app
