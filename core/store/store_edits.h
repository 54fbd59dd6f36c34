// The RunEdits of a store.
//
// Threads    As RunEdits.
// Ownership  Borrows the connection.

#pragma once

#include "core/store/store_connection.h"

#include <millrace/run_edits.h>

#include <memory>

namespace mr {

std::unique_ptr<RunEdits> makeRunEdits(StoreConnection& connection);

} // namespace mr
