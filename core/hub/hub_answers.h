// A hub's refusals and the network's faults, as sentences with the way out.
//
// Threads  Pure functions.

#pragma once

#include "core/hub/http_transport.h"
#include "core/hub/hub_endpoint.h"

#include <millrace/hub.h>
#include <millrace/status.h>

#include <chrono>
#include <string>

namespace mr {

// Behind an error after which the same command goes on.
inline constexpr const char* kHubGoesOn =
    "; what was fetched is kept, and the same command goes on from there";

struct HubSubject {
    HubRequest request;
    std::string path; // empty: the list of files
};

// An answer that is no file and no list. `host` is where it came from.
Status hubRefusal(const HubSubject& subject, const HubEndpoint& endpoint, const std::string& host,
    const HttpHead& head);

Status hubFault(
    const HttpOutcome& outcome, const std::string& host, std::chrono::milliseconds stall);

} // namespace mr
