// The plan of `millrace get`, shown before anything is fetched, and the question whether it may.
//
// Threads  The main thread.

#pragma once

#include <millrace/hub.h>
#include <millrace/status.h>

#include <functional>
#include <nlohmann/json_fwd.hpp>

namespace mr::app {

void printPlan(const HubPlan& plan);
nlohmann::json planEvent(const HubPlan& plan);

// Asks on the terminal. InvalidArgument where there is none, with the option that answers;
// Cancelled for any answer but yes, and once `isStopped`.
Status askForConsent(const HubPlan& plan, const std::function<bool()>& isStopped);

} // namespace mr::app
