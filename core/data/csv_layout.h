// CsvLayout: the layout of a CSV file: its separator, whether its first row names the columns, and
// the additions of the program that wrote it.
//
// Found from the first rows by evidence: a separator that cuts them into equally many cells, a
// first row that is unlike the values below it. pandas and R write the numbers of the rows in a
// first column without a name, Excel may say "sep=;" in a line of its own, and some programs write
// a separator behind the last cell.
//
// Threads  Functions of their arguments.
// Errors   InvalidArgument: two columns of one name. Io from the disk.

#pragma once

#include "core/data/csv_scanner.h"

#include <string>
#include <vector>

namespace mr {

struct CsvLayout {
    char delimiter = ',';
    bool tellsSeparator = false;    // the first line is "sep=..."
    bool header = false;            // the first row names the columns
    bool endsInSeparator = false;   // rows may have an empty cell too many
    std::vector<std::string> names; // names of the columns that are kept

    // Rows of the beginning as they were cut, the first one included.
    std::vector<std::vector<std::string>> sample;
    bool even = false; // all of `sample` have the cells of the first
};

// `wanted`: RecordOptions::wanted.
Result<CsvLayout> findCsvLayout(
    const std::filesystem::path& path, const std::vector<std::string>& wanted);

// Digits, signs and separators only.
bool looksLikeNumber(std::string_view text);

// "CSV with semicolons, the first row is a header"
std::string describe(const CsvLayout& layout);

} // namespace mr
