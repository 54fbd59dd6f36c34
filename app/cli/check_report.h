// The checks of a dataset's rows as JSON.
//
// Threads  Pure.

#pragma once

#include <millrace/data_checks.h>

#include <nlohmann/json.hpp>

namespace mr::app {

// Every check with its number of rows, the first 20 of them, and all as --exclude-rows takes them;
// lengths as percentiles, and what
// shorter and longer sequences keep.
nlohmann::json checkReport(const DataChecks& checks);

} // namespace mr::app
