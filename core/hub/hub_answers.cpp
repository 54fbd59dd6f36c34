#include "core/hub/hub_answers.h"

#include "core/base/shown_text.h"
#include "core/hub/hub_names.h"

#include <fmt/format.h>

namespace mr {
namespace {

Status denied(const std::string& message)
{
    return Status::error(ErrorKind::InvalidArgument, message);
}

std::string kindName(const HubRequest& request)
{
    return request.kind == HubKind::Model ? "model" : "dataset";
}

Status noToken(const HubSubject& subject, const HubEndpoint& endpoint, const std::string& host)
{
    const std::string& name = subject.request.name;
    if (!endpoint.token.empty())
        return denied(fmt::format(
            "{} does not accept the token for {} (401): it is wrong, has run out or has "
            "no right to read this {}; make another one and put it in HF_TOKEN",
            host, name, kindName(subject.request)));
    if (endpoint.isTokenUnsent)
        return denied(fmt::format(
            "{} wants a token for {} (401), and yours was not sent, because the address "
            "in HF_ENDPOINT is not https; name an address that is",
            host, name));
    return denied(
        fmt::format("{} gives {} to nobody without a token (401): its name is wrong, or it "
                    "is private or gated; check the name, and if you may read it, put your "
                    "token in HF_TOKEN",
            host, name));
}

Status noAccess(const HubSubject& subject, const HubEndpoint& endpoint, const std::string& host)
{
    return denied(fmt::format("{} refuses {} (403): accept its licence, or ask for access, at {}, "
                              "and then use the same command again{}",
        host, subject.request.name, endpoint.addressOf(pageAddress(subject.request)),
        endpoint.token.empty() ? " with your token in HF_TOKEN" : ""));
}

Status notFound(const HubSubject& subject, const std::string& host, const HttpHead& head)
{
    const HubRequest& request = subject.request;
    const std::string code = headerOf(head, "x-error-code").value_or("");
    if (code == "RevisionNotFound")
        return denied(fmt::format("{} has {}, but no revision {} of it (404); correct --revision",
            host, request.name, request.revision));
    if (!subject.path.empty() && code != "RepoNotFound")
        return denied(fmt::format("{} lists the file {} of {} and does not have it (404); the "
                                  "revision may have been replaced: use the same command again",
            host, shownName(subject.path), request.name));
    return denied(fmt::format("{} has no {} {}{} (404); check the name{}", host, kindName(request),
        request.name,
        code == "RepoNotFound" ? std::string() : " with a revision " + request.revision,
        request.kind == HubKind::Model ? "; a dataset is asked for with --dataset" : ""));
}

} // namespace

Status hubRefusal(const HubSubject& subject, const HubEndpoint& endpoint, const std::string& host,
    const HttpHead& head)
{
    switch (head.status) {
    case 401:
        return noToken(subject, endpoint, host);
    case 403:
        return noAccess(subject, endpoint, host);
    case 404:
        return notFound(subject, host, head);
    case 429:
        return Status::error(ErrorKind::Io,
            fmt::format("{} has had too many requests from here (429); wait some minutes{}{}", host,
                endpoint.token.empty() ? ", or put a token in HF_TOKEN, for which it allows more"
                                       : "",
                kHubGoesOn));
    default:
        break;
    }
    if (head.status >= 500)
        return Status::error(
            ErrorKind::Io, fmt::format("{} has a fault of its own ({}); try later{}", host,
                               head.status, kHubGoesOn));
    return Status::error(ErrorKind::Io,
        fmt::format("{} answers with status {}, which is no answer of a hub; check HF_ENDPOINT",
            host, head.status));
}

Status hubFault(
    const HttpOutcome& outcome, const std::string& host, std::chrono::milliseconds stall)
{
    const std::string words = outcome.words.empty() ? "" : " (" + outcome.words + ")";
    const auto failed = [](const std::string& message) {
        return Status::error(ErrorKind::Io, message);
    };
    switch (outcome.fault) {
    case HttpFault::Cancelled:
        return Status::error(ErrorKind::Cancelled, std::string("stopped") + kHubGoesOn);
    case HttpFault::Host:
        return failed(
            fmt::format("{} is not found{}: there is no network, or the name in HF_ENDPOINT "
                        "is wrong; check the connection",
                host, words));
    case HttpFault::Refused:
        return failed(fmt::format("{} takes no connection{}: there is no network, nobody listens "
                                  "there, or a firewall forbids it; check the connection and "
                                  "HF_ENDPOINT",
            host, words));
    case HttpFault::Tls:
        return failed(
            fmt::format("there is no secure connection to {}{}; check this machine's clock "
                        "and its certificates (package ca-certificates)",
                host, words));
    case HttpFault::Stalled:
        return failed(fmt::format("{} sent nothing for {:.3g} s{}", host,
            static_cast<double>(stall.count()) / 1000.0, kHubGoesOn));
    case HttpFault::None:
    case HttpFault::Cut:
    case HttpFault::Stopped:
    case HttpFault::Other:
        break;
    }
    return failed(fmt::format("the connection to {} was cut{}{}", host, words, kHubGoesOn));
}

} // namespace mr
