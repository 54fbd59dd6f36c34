// The rows of a dataset, each looked at before a run: what trains nothing, is cut, repeats another
// row or stands in the evaluation data.
//
// Threads  Any; blocking. The whole file is read and, with a model, tokenised by several threads.
//          `onRows` is called on the caller's thread.
// Errors   As inspectDataset(); Cancelled: `onRows` said so. A model that cannot tokenise the rows
//          is one of `problems`, and the checks that need no tokens are made.
// Units    Rows and lines from 1; tokens.

#pragma once

#include <millrace/run_spec.h>
#include <millrace/status.h>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mr {

enum class RowCheck : std::uint8_t {
    Unreadable,    // cannot be read; DataSource::skipBadRows leaves such rows out
    LeftOut,       // the chat template leaves a part of it out
    Untrained,     // no token of it is trained
    Cut,           // longer than the sequence length
    EmptyTurn,     // a question or an answer without words
    RoleOrder,     // turns in an order that no conversation has
    Encoding,      // characters that were lost or read in the wrong encoding
    Duplicate,     // as an earlier row, byte for byte of what is trained
    NearDuplicate, // nearly as an earlier row
    InEvaluation,  // as a row of the evaluation data, or nearly
};
inline constexpr std::size_t kRowChecks = 10;

std::string_view name(RowCheck check) noexcept; // "unreadable", "left-out", ...

struct CheckedRow {
    std::int64_t row = 0;
    std::int64_t line = 0;  // 0: the file has no lines (Parquet)
    std::int64_t other = 0; // the row that it repeats, in its file; 0: none
    std::string_view why;   // for a person; of static storage
};

struct RowLength {
    std::int64_t row = 0;
    std::int64_t tokens = 0; // before cutting; a conversation's longest sequence
};

struct LengthCount {
    std::int64_t tokens = 0;
    std::int64_t rows = 0;
};

struct DataChecks {
    std::int64_t rows = 0; // read, those that cannot be read among them
    std::array<std::vector<CheckedRow>, kRowChecks> found; // each ascending
    std::vector<RowLength> longest;    // at most 20, the longest first; none without a model
    std::vector<LengthCount> lengths;  // rows that a length can cut, ascending
    std::int64_t seqLen = 0;           // that rows were cut to; 0 without a model
    std::vector<std::string> problems; // why there are no tokens

    const std::vector<CheckedRow>& of(RowCheck check) const noexcept
    {
        return found[static_cast<std::size_t>(check)];
    }
};

// The rows of `lengths`, cut to sequences of `seqLen` inputs.
struct LengthEffect {
    std::int64_t tokens = 0; // of all rows
    std::int64_t kept = 0;
    std::int64_t cutRows = 0;
};
LengthEffect effectOfLength(const std::vector<LengthCount>& lengths, std::int64_t seqLen) noexcept;

struct CheckRequest {
    DataSource source;
    std::optional<DataSource> evaluation{}; // to find its rows in `source`
    std::string modelDir{};                 // empty: no check that needs tokens
    std::int64_t seqLen = 0;                // >= 1 with a model
    std::string split{};                    // as inspectDataset()
    int threads = 0;                        // 0: one a physical core
    // Called every few thousand rows with those read so far; false stops.
    std::function<bool(std::int64_t rows)> onRows{};
};

Result<DataChecks> checkDataset(const CheckRequest& request);

struct RowText {
    std::int64_t row = 0;
    std::string text; // "prompt: Why? | response: So." on one line
};

// Rows as a person reads them, ascending, each shortened to `bytes`. Reads the file up to the last
// of them. A row that cannot be read is not among them.
Result<std::vector<RowText>> readRowTexts(
    const DataSource& source, const RowList& rows, std::size_t bytes);

} // namespace mr
