#include "app/hub_session.h"

#include "app/net_plugin.h"
#include "core/hub/hub_endpoint.h"

#include <utility>

namespace mr::app {
namespace {

HubCallbacks callbacksOf(HubWatch watch)
{
    HubCallbacks callbacks;
    if (watch.note)
        callbacks.note = std::move(watch.note);
    if (watch.progress)
        callbacks.progress = std::move(watch.progress);
    return callbacks;
}

} // namespace

Result<HubSettings> hubSettings(const HubRequest& request)
{
    HubSettings settings;
    MR_ASSIGN(settings.endpoint, hubEndpoint(processEnvironment()));
    if (request.into.empty()) {
        MR_ASSIGN(settings.cache, hubCache(processEnvironment()));
    }
    return settings;
}

HubPeer peerOf(const HubSettings& settings)
{
    return {settings.endpoint.url.shownHost(), !settings.endpoint.token.empty()};
}

Result<HubPeer> hubPeer()
{
    MR_ASSIGN(const HubSettings settings, hubSettings({}));
    return peerOf(settings);
}

HubSession::HubSession(
    std::unique_ptr<HttpTransport> network, const HubSettings& settings, HubWatch watch)
    : m_network(std::move(network))
    , m_download(*m_network, settings, callbacksOf(watch))
    , m_cancel(watch.stop, [this] { m_download.cancel(); })
{
}

HubSession::~HubSession() = default;

Result<std::unique_ptr<HubSession>> HubSession::open(const HubSettings& settings, HubWatch watch)
{
    auto network = openNetwork();
    if (!network.ok())
        return Status::error(network.status().kind(),
            network.status().message() +
                "; or fetch the files with another program and name their folder");
    return std::make_unique<HubSession>(std::move(network).value(), settings, std::move(watch));
}

Result<HubPlan> planDownload(const HubRequest& request, const HubWatch& watch)
{
    MR_ASSIGN(const HubSettings settings, hubSettings(request));
    MR_ASSIGN(const auto session, HubSession::open(settings, watch));
    return session->plan(request);
}

Status runDownload(const HubPlan& plan, const HubWatch& watch)
{
    MR_ASSIGN(const HubSettings settings, hubSettings(plan.request));
    if (const HubPeer peer = peerOf(settings); peer.host != plan.host)
        return Status::error(ErrorKind::InvalidArgument,
            "the files were listed by " + plan.host + ", and " + peer.host +
                " would be asked for them now; list them again");
    MR_ASSIGN(const auto session, HubSession::open(settings, watch));
    return session->run(plan);
}

} // namespace mr::app
