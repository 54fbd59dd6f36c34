// SpecField: one setting of a run as a row of a table: its member of RunSpec, its field in JSON,
// its option on the command line and its range.
//
// JSON, the command line, *Copy as command line*, edits of a part, range checks, the form of the
// window and the comparison of runs walk this table. A new setting is a member of RunSpec and a
// row.
//
// Threads  Pure.
// Errors   readOption(), checkRanges(): InvalidArgument names the option and the right form.

#pragma once

#include <millrace/run_spec.h>

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace mr {

// The member of a setting; its type says how it is read and written.
using SpecMember =
    std::variant<std::string RunSpec::*, std::int64_t RunSpec::*, std::uint64_t RunSpec::*,
        double RunSpec::*, bool RunSpec::*, PrecisionChoice RunSpec::*, RecomputeChoice RunSpec::*,
        KeepInputs RunSpec::*, Optimizer RunSpec::*, WeightFormat RunSpec::*, TrainOrder RunSpec::*,
        ScheduleKind RunSpec::*, DeviceChoice RunSpec::*, std::vector<DataSource> RunSpec::*,
        std::vector<std::string> RunSpec::*, std::map<std::string, std::string> RunSpec::*>;

// Values from `least` to `most`. Whole numbers are exact up to 2^53.
struct SpecRange {
    double least = 0.0;
    double most = 0.0;
    bool hasLeast = true; // false: only values above `least`
    bool hasMost = true;  // false: only values below `most`
    bool orZero = false;  // 0 is outside of the range, and asks the program to choose
};

enum class SpecUnit : std::uint8_t { None, Bytes, BytesPerSecond };

// The words of a bool on the command line; empty: the option is a flag without a value.
struct SwitchWords {
    std::string_view off = {};
    std::string_view on = {};
};

struct SpecField {
    std::string_view key;    // in JSON and in the record of a run
    std::string_view option; // without dashes; empty: the command line does not have it. Switches
                             // with words of their own may share one
    std::string_view help;   // help text; empty: the command line derives it from the policies
    SpecMember member;
    std::optional<SpecRange> range = std::nullopt;
    SpecUnit unit = SpecUnit::None;
    SwitchWords words = {};
    bool isPlace = false; // a name or a folder: differs between any two runs
};

// In the order of `train --help`.
std::span<const SpecField> specFields();
// Null if no setting has this name in JSON.
const SpecField* findSpecField(std::string_view key);

// Names in JSON of the settings that only an adapter has.
std::span<const std::string_view> adapterKeys();
// Takes them from `from`.
void takeAdapterOptions(const RunSpec& from, RunSpec& spec);

// Text of the command line into a setting. A list gets one more entry, a map one or more
// "key=value" with commas between them, a dataset its path alone.
Status readOption(const SpecField& field, std::string_view text, RunSpec& spec);
// Texts that readOption() reads as the setting of `spec`, one for each time the option is given.
// None: the setting has its default. A flag has one empty text.
std::vector<std::string> optionTexts(const SpecField& field, const RunSpec& spec);

// The options of `millrace train` that ask for `spec`, without quotes. Datasets are read in the
// same manner, so the manner of the first one is written.
std::vector<std::string> trainArguments(const RunSpec& spec);

Status checkRanges(const RunSpec& spec);

// "a=b,c=d" or one "a=b" into `out`; the key must not be empty. `option` stands in errors, as
// "--map".
Status readPairs(
    std::string_view text, std::string_view option, std::map<std::string, std::string>& out);

} // namespace mr
