// Facts about the columns of a dataset, measured over the whole file: the kinds of their cells and
// the looks of their texts.
//
// Every row is looked at for kinds. Looks of texts are measured on a sample of rows that is spread
// evenly over the rows read so far: every n-th row, n doubling as the file turns out to be longer.
// The sample keeps a hash, a length and a few marks for each cell, so a file of any size takes at
// most a few MB.
//
// Threads  Pure; a FactsCollector is confined to its owner.
// Units    Bytes of UTF-8; rows count from 1.

#pragma once

#include "core/data/record_reader.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace mr {

// The shape of a list or an object, or of a text that is the JSON of a list of objects.
enum class CellShape : std::uint8_t {
    None,           // no list or object was seen, or only empty ones
    RoleContent,    // [{"role", "content"}, ...]
    FromValue,      // [{"from", "value"}, ...]
    RoleParts,      // [{"role", "parts"}, ...]
    InputOutput,    // [{"input", "output"}, ...]
    HumanAssistant, // [{"human", "assistant"}, ...]
    Texts,          // [text, ...]
    TextPairs,      // [[text, text], ...]
    Objects,        // [{...}, ...] with other keys
    Object,         // {...}
    Values,         // a list of numbers and the like
};

// Whether a list of this shape is a conversation under any column name.
bool isConversation(CellShape shape) noexcept;

struct ColumnFacts {
    std::string name;
    bool text = true;    // no row holds anything but text or null
    bool nested = false; // some row holds a list or an object
    bool listed = false; // some row holds a text that begins as a JSON list of objects
    bool filled = false; // some row holds a text, or a list or object with something in it
    bool truth = false;  // some row holds true or false, and none holds anything else
    bool other = false;  // some row holds anything else than true, false or null
    bool bad = false;    // some row holds false
    bool plain = true;   // cells that are no lists or objects are text or null

    std::int64_t firstRow = 1;       // in which the column appeared
    std::int64_t rows = 0;           // that hold more than nothing
    std::int64_t nestedRows = 0;     // that hold a list or an object
    std::int64_t firstNestedRow = 0; // 0: none does
    CellShape shape = CellShape::None;
    bool isMixed = false;              // rows hold lists of different shapes
    bool isEven = true;                // Texts: every list of the sample has an even number of them
    std::vector<std::string> keys{};   // in an object, or the first object of a list; at most 16
    std::vector<std::string> values{}; // distinct texts, lower case, of columns that have no more
                                       // than 16 and none above 24 bytes; else empty
    bool hasManyValues = false;        // so that `values` was given up
    std::string example{};             // its first text, shortened

    // Measured on the sample; shares are of `sampled`.
    std::int64_t sampled = 0;  // cells that hold more than nothing
    std::int64_t distinct = 0; // different cells among them
    double meanBytes = 0.0;
    double spaced = 0.0;      // hold white space within, or a letter beyond ASCII
    double numbers = 0.0;     // are a number, or true or false
    double links = 0.0;       // are a URL or a path of a file
    double dates = 0.0;       // begin as 2024-01-31 or 2024/01/31 and hold no more than a time
    double identifiers = 0.0; // ASCII letters with digits, - and _ and no white space

    std::vector<std::string> within{}; // columns whose text holds this one's in every sampled row

    // Texts in some rows and lists in others.
    bool isTwofold() const noexcept { return nested && nestedRows < rows; }
    bool isNumeric() const noexcept { return sampled > 0 && numbers >= 1.0; }
    bool isWithin(std::string_view column) const noexcept;
};

class FactsCollector
{
public:
    void add(const Record& record);
    // Ends the collecting. Returns the columns in the order of first appearance. A list or an
    // object in one of ten rows or fewer makes no column of lists: `nested` is false, and the
    // reader of that row reports it.
    std::vector<ColumnFacts> finish();

private:
    struct SampledCell {
        std::uint64_t hash = 0;
        std::int64_t row = 0; // from 0
        std::uint32_t column = 0;
        std::uint32_t bytes = 0;
        std::uint8_t marks = 0;
    };

    std::uint32_t columnOf(const Cell& cell, std::size_t place);
    bool isFirst(const Cell& cell, std::uint32_t column) const;
    void keep(const Cell& cell, std::uint32_t column, std::int64_t row);
    void sample(const Record& record);
    void compare(const Record& record);
    void thinOut();

    std::vector<ColumnFacts> m_facts;
    std::unordered_map<std::string, std::uint32_t> m_places;
    std::vector<SampledCell> m_sample;
    std::vector<std::uint32_t> m_apart; // by column: a bit for each that does not hold its text
    std::int64_t m_rows = 0;
    std::int64_t m_stride = 1;
};

} // namespace mr
