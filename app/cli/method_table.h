// The methods of a model as a table for the terminal: a line each, with what it needs.
//
// Threads  Pure.

#pragma once

#include <millrace/planner.h>

#include <string>
#include <vector>

namespace mr::app {

// Lines without their ends; the first one has the names of the columns. The last column says
// whether the method fits, and how much memory is left or lacks.
std::vector<std::string> methodTable(const std::vector<PlanReport>& reports);

} // namespace mr::app
