// This machine, model folders and datasets before a run: inspected without training.
//
// Threads  Any; blocking (files). The UI calls them from workers.
// Errors   A path that cannot be read is a Status; a thing that was read but cannot be used has
//          its reasons in `problems`, so the page can show the rest.

#pragma once

#include <millrace/run_spec.h>
#include <millrace/status.h>

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace mr {

struct GpuInfo {
    std::string name;
    std::uint64_t memoryBytes = 0;
    std::string note; // why it is not used, or empty
};

struct MachineInfo {
    std::string cpuName;
    std::string instructionSet; // "avx512_bf16", "avx512", "avx2"
    int physicalCores = 0;
    int threads = 0; // available to this process
    std::uint64_t memoryBytes = 0;
    std::uint64_t availableBytes = 0;
    bool memoryIsLimited = false;    // memoryBytes is a control group's limit, below the machine's
    std::uint64_t diskFreeBytes = 0; // where runs are kept
    std::vector<GpuInfo> gpus;       // seen through the driver, used or not
};

MachineInfo inspectMachine();
std::string toJson(const MachineInfo& machine);

struct ModelInfo {
    std::string path;
    std::string name; // folder name
    std::string architecture;
    std::string dtype;
    std::int64_t parameters = 0;
    std::int64_t layers = 0;
    std::int64_t hidden = 0;
    std::int64_t vocab = 0;
    std::int64_t maxPositions = 0;
    bool tiedEmbedding = false;
    std::uint64_t bytes = 0;           // size of the weight files
    std::string tokenizerKind;         // as Tokenizer::kind(); empty: none that can be used
    std::vector<std::string> problems; // empty: can be trained
    std::vector<std::string> notes;    // of what the config asks for and training leaves out
    bool canBePlanned = false; // its config is known; without problems it can be trained, too
};

// Reads config, headers of the weight files and the tokenizer; not the weights.
Result<ModelInfo> inspectModel(const std::string& path);

struct PreviewToken {
    std::string text; // one piece, as the user should see it
    std::int32_t id = 0;
    bool trained = false;
};

struct PreviewRow {
    std::int64_t row = 0; // in the file, from 1
    std::vector<PreviewToken> tokens;
    bool cut = false; // longer than the sequence length
};

// Why a dataset is refused, where a caller can offer a way out.
enum class DataRefusal : std::uint8_t {
    None,           // not refused, or for another reason
    UnknownColumns, // the roles of `columns` cannot be told from their content
    Preferences,    // answers to choose between
    BadAnswers,     // rows marked as bad answers
    Media,          // pictures, sound or video
    Untrainable,    // a layout that is known and cannot be trained as it is
    NoTemplate,     // conversations, and a model without a chat template
};

// The roles of a mapping, in the order of display.
inline constexpr std::array<std::string_view, 8> kMappingRoles{
    "text", "prompt", "input", "response", "messages", "tools", "system", "history"};

// One way to read a file with ambiguous columns.
struct DataReading {
    std::string layout;                              // "Alpaca", "pairs", ...
    std::map<std::string, std::string> mapping;      // for DataSource::columns
    std::string firstRow;                            // the row made of the first texts, shortened
    std::map<std::string, std::string> firstTexts{}; // first texts by role, each within quotes
};

// Rows that cannot be read, where DataSource::skipBadRows does not leave them out.
struct RefusedRows {
    std::string first;                            // "rows.jsonl, line 2: not valid JSON (row 2)"
    std::map<std::string, std::int64_t> counts{}; // by reason; empty: there are none
    bool isAll = true;                            // else there may be more
};

struct DatasetInfo {
    std::string path;
    DataFormat format = DataFormat::Auto; // found
    std::string reading; // in words: "CSV with semicolons, the first row is a header"
    std::vector<std::string> columns;
    std::string layout;                         // "Alpaca", "ShareGPT", "as --map says", ...
    std::map<std::string, std::string> mapping; // "prompt" -> column, "response" -> column, ...
    std::vector<std::string> unusedColumns;     // that nothing is trained of
    std::vector<DataReading> readings;          // refused file: the readings it may have
    std::string chatTemplate; // "chatml", "llama3" or "own", where one was chosen for the model
    DataRefusal refusal = DataRefusal::None;
    std::int64_t rows = 0;
    std::int64_t rowsExcluded = 0;                   // DataSource::excluded
    std::map<std::string, std::int64_t> rowsSkipped; // that cannot be read, by reason
    RefusedRows rowsRefused;
    std::int64_t sequences = 0;
    std::int64_t tokens = 0; // 0 without a tokenizer
    std::int64_t trainedTokens = 0;
    std::int64_t cutRows = 0;
    std::int64_t emptyRows = 0;
    std::int64_t answers = 0;        // of conversations, trained
    std::int64_t emptyThoughts = 0;  // answers that begin with a thought that holds nothing
    std::int64_t unreadSwitches = 0; // rows with "/no_think", for a model that does not read it
    std::vector<std::string> notes;  // what to know of the model's files, and no problem
    std::int64_t seqLen = 0;         // that rows were cut to
    std::int64_t packedRows = 0; // micro-batch rows if short sequences share them; else `sequences`
    std::uint64_t bytes = 0;
    std::vector<PreviewRow> preview;
    std::vector<std::string> problems; // empty: can be used
};

// `modelDir` may be empty: then only rows and columns are known. At most `previewRows` are shown.
// `split`: text is cut into documents there.
Result<DatasetInfo> inspectDataset(const DataSource& source, const std::string& modelDir,
    std::int64_t seqLen, int previewRows, const std::string& split = {});

std::string_view name(DataRefusal refusal) noexcept; // "unknown-columns", ...; empty for None

// Training data as a run reads it, and the micro-batch rows it makes.
struct DataReport {
    std::int64_t rows = 0; // in the files
    std::int64_t cutRows = 0;
    std::int64_t emptyRows = 0;                        // nothing to train, left out
    std::int64_t promptRows = 0;                       // a prompt and its answer, not text
    std::int64_t rowsExcluded = 0;                     // DataSource::excluded
    std::map<std::string, std::int64_t> rowsSkipped{}; // that cannot be read, by reason
    std::int64_t answers = 0;                          // as in DatasetInfo
    std::int64_t emptyThoughts = 0;                    // as in DatasetInfo
    std::int64_t unreadSwitches = 0;                   // as in DatasetInfo
    std::vector<std::string> notes{};
    std::int64_t sequences = 0; // to train on
    std::int64_t evalSequences = 0;
    std::int64_t inputs = 0; // tokens of an epoch that are computed, padding aside
    std::int64_t seqLen = 0;
    bool pack = false;
    std::int64_t packedRows = 0; // that short sequences share; 0: not packed, nor worth it
    std::string layout;          // as DatasetInfo::layout; several: "A; B"
    std::map<std::string, std::string> mapping; // first training file only
    std::vector<std::string> unusedColumns;     // columns of the training files that train nothing

    std::int64_t batchRows() const noexcept { return pack ? packedRows : sequences; }
};

// Padding's share of `batchRows` rows of `seqLen` places that hold `inputs` tokens; 0 without rows.
double paddingShare(std::int64_t inputs, std::int64_t batchRows, std::int64_t seqLen) noexcept;

// More than a third of the computed places is padding: worth a warning.
bool isMostlyPadded(double share) noexcept;

// One line or a few each: the rows that were read; the padding that packing would save, if much;
// the meaning of the columns.
std::string describeData(const DataReport& report);
std::string packingAdvice(const DataReport& report);
// Answers with an empty thought and switches that the model does not read; empty: none.
std::string thoughtAdvice(std::int64_t emptyThoughts, std::int64_t answers);
std::string switchAdvice(std::int64_t unreadSwitches);
// All advice and notes of the data.
std::vector<std::string> dataAdvice(const DataReport& report);
// "Alpaca: prompt=instruction, response=output; not used: "id"".
std::string layoutNote(const DataReport& report);
std::string layoutNote(const std::string& layout, const std::map<std::string, std::string>& mapping,
    const std::vector<std::string>& unusedColumns);
std::string toJson(const DataReport& report);

} // namespace mr
