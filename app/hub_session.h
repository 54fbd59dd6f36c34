// HubSession: the network and one download, from the hub that the environment names.
//
// `millrace get` and the window fetch through it. The settings come from the environment and open
// nothing; open() is the first moment at which the process has code that opens a connection.
//
// Threads    plan() and run() block, on one thread; a stop of the watch comes from any.
// Errors     Of hubEndpoint(), hubCache(), openNetwork() and HubDownload. No text has the token.
// Lifetime   One plan and one run, as an error or a stop uses the download up.

#pragma once

#include "core/hub/hub_download.h"

#include <millrace/hub.h>
#include <millrace/status.h>

#include <functional>
#include <memory>
#include <stop_token>

namespace mr {
class HttpTransport;
}

namespace mr::app {

// The cache is looked for where the request names no folder.
Result<HubSettings> hubSettings(const HubRequest& request);
HubPeer peerOf(const HubSettings& settings);
Result<HubPeer> hubPeer();

class HubSession
{
public:
    static Result<std::unique_ptr<HubSession>> open(const HubSettings& settings, HubWatch watch);

    HubSession(std::unique_ptr<HttpTransport> network, const HubSettings& settings, HubWatch watch);
    ~HubSession();
    HubSession(const HubSession&) = delete;
    HubSession& operator=(const HubSession&) = delete;

    Result<HubPlan> plan(const HubRequest& request) { return m_download.plan(request); }
    Status run(const HubPlan& plan) { return m_download.run(plan); }

private:
    std::unique_ptr<HttpTransport> m_network;
    HubDownload m_download;
    std::stop_callback<std::function<void()>> m_cancel;
};

// A session each: what waits for the user between the two holds no connection.
Result<HubPlan> planDownload(const HubRequest& request, const HubWatch& watch);
Status runDownload(const HubPlan& plan, const HubWatch& watch);

} // namespace mr::app
