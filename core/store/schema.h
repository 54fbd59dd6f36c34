// The history database's form: its tables, its version, and how an older file becomes this one.
//
// A file is created whole in one transaction, or migrated one numbered step at a time, each in one
// transaction, after a backup beside it.
//
// Threads  As Database.
// Errors   InvalidArgument: a file of another program, of a newer Millrace, or on a network file
//          system. DataCorrupt: not a database, or damaged.

#pragma once

#include "core/store/sqlite.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace mr {

inline constexpr std::int64_t kApplicationId = 0x4D4C5243; // "MLRC"
inline constexpr int kSchemaVersion = 3;

// Makes version `to` out of version `to - 1`; runs inside a transaction.
struct Migration {
    int to;
    Status (*apply)(Database& database);
};

// Opens for writing: creates folder and file where missing, checks, migrates, sets the pragmas.
Result<std::unique_ptr<Database>> openForWriting(const std::string& path);
// Opens for reading. InvalidArgument if there is no file, or no history in it yet.
Result<std::unique_ptr<Database>> openForReading(const std::string& path);

// Brings a database to the version of the last of `migrations` (ascending, without gaps). Backs it
// up first if there is anything to do: history-v1-<UTC time>.db in the same folder. A step that
// fails leaves the version before it.
Status migrate(Database& database, std::span<const Migration> migrations);

// Is `path`, or the nearest folder above it that exists, on a file system on which WAL is unsafe?
enum class FileSystemKind : std::uint8_t { Local, Doubtful, Network };
FileSystemKind fileSystemKind(const std::string& path);

} // namespace mr
