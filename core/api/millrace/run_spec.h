// RunSpec: everything a run is asked to do, as the command line and the New run page say it.
// spec_fields.h has a row for each member.
//
// Zero, empty or Auto means "choose for me" where the comment says so; resolve() fills those in
// (decisions.md 17 and 18), and the run record keeps the resolved spec.
//
// Threads  A value.
// Errors   parse and check functions: InvalidArgument names the field and the right form.
// Units    In the field names.

#pragma once

#include <millrace/row_list.h>
#include <millrace/status.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace mr {

enum class DataFormat : std::uint8_t { Auto, Text, Jsonl, Json, Csv, Parquet };
enum class PrecisionChoice : std::uint8_t { Auto, BF16, F32, Fp8 }; // Auto: never Fp8
enum class RecomputeChoice : std::uint8_t { Auto, None, Cheap, Block };
// How the input of a block waits for backward. Int8: codes with a scale for every 128 of a row,
// half the bytes; results differ.
enum class KeepInputs : std::uint8_t { Bf16, Int8 };
// All but AdamW keep a number for each row and column of a weight, moments of some rows, or
// nothing, and update a layer on the device right behind its own backward.
enum class Optimizer : std::uint8_t {
    AdamW,
    Factored,
    AdaLomo,
    SgdNormalised,
    ApolloMini,
    Grass,
    Mezo, // forward passes alone
};
// How the master of a weight is kept. Auto: F32 with adamw or precision fp32, else Bits24.
enum class WeightFormat : std::uint8_t { Auto, F32, Bits24, Random16 };
// All trained weights in every step, or one block (or end) of the model after the other, for some
// steps each.
enum class TrainOrder : std::uint8_t { Together, Blocks };
enum class ScheduleKind : std::uint8_t { Constant, Linear, Cosine };
enum class DeviceChoice : std::uint8_t { Auto, Cpu, Cuda };

struct DataSource {
    std::string path;
    DataFormat format = DataFormat::Auto;
    // "prompt" -> column, "response" -> column, "text" -> column; empty: found by name. Two keys
    // are no columns: "style" -> "template" or "plain", and "chat_template" -> the template of
    // conversations: "chatml", "llama3", a file, or the text of a template.
    std::map<std::string, std::string> columns;
    bool skipBadRows = false;     // rows that cannot be read are left out and listed, not refused
    RowList excluded{};           // rows to leave out
    std::uint64_t excludedOf = 0; // bytes of the file in which they were chosen; 0: unknown

    bool operator==(const DataSource&) const = default;
};

struct RunSpec {
    std::string name;             // empty: made of model and dataset
    std::string modelDir;         // a Hugging Face folder; or empty, and:
    std::string scratchConfig;    // config.json of a model to be initialised
    std::string scratchTokenizer; // its tokenizer file
    std::vector<DataSource> data;
    std::vector<DataSource> evalData; // empty: a share of the sequences is held out
    double holdOut = 0.05;            // that share, at most 200 sequences; 0: train on everything
    std::string split;                // text: cut files into documents at this string
    bool pack = false; // short sequences share rows, each by itself; a step then trains more of
                       // them, so another learning rate may suit
    std::int64_t evalEvery = -1;  // steps; 0: never; -1: ten times a run
    std::int64_t evalAnswers = 0; // evaluation pairs that are also answered, greedily, and
                                  // compared with the response; 0: none
    std::string outDir;           // run folder; empty: made below the data folder
    std::string saveDir;          // where checkpoints and the model go if not to outDir, which
                                  // had no room for them; empty: there
    std::string database;         // history; empty: the user's

    std::int64_t steps = 0; // 0: by epochs
    double epochs = 1.0;
    std::int64_t seqLen = 0; // 0: min(1024, the model's maximum)
    std::int64_t microBatch = 1;
    std::int64_t accumulate = 8;
    double learningRate = 0.0; // 0: 2e-5; of an adapter 2e-4
    ScheduleKind schedule = ScheduleKind::Cosine;
    std::int64_t warmupSteps = -1; // -1: 3 % of the steps
    double weightDecay = -1.0;     // -1: 0.01; of an adapter 0
    Optimizer optimizer = Optimizer::AdamW;
    WeightFormat weights = WeightFormat::Auto;
    double beta1 = 0.9;
    double beta2 = 0.999;
    double eps = 1e-8;
    double clipNorm = 1.0; // 0: off
    std::uint64_t seed = 1;
    PrecisionChoice precision = PrecisionChoice::Auto;
    // "full", "lora": an adapter beside the model, which stays as it is, or "qlora": beside a model
    // whose matrices are held in 4 bits.
    std::string method = "full";
    std::int64_t rank = 16;
    double alpha = -1.0;         // -1: the rank; what the adapter adds is scaled by alpha / rank
    bool rankStabilised = false; // by alpha / sqrt(rank)
    bool dora = false;           // DoRA: the length of each row is trained beside the adapter
    // Probability that an element of the adapter's input is 0 in a training step. -1: 0, or that of
    // the adapter to go on from.
    double dropout = -1.0;
    double loraPlus = 1.0; // learning rate of the matrices B by that of A (LoRA+)
    // Linear modules with an adapter: ends of names, "q_proj,mlp.down_proj", or an expression for
    // whole names, "/.*self_attn.*/". Empty: all modules of the blocks.
    std::string targets;
    std::string excludedTargets;                    // ends of names that have none
    std::map<std::string, std::string> rankPattern; // expression -> rank of the modules it matches
    std::map<std::string, std::string> alphaPattern;
    std::string savedModules;  // "embed_tokens,lm_head": trained whole beside the adapter
    std::string trainedTokens; // "300,310-319": ids of tokens whose rows of the embedding are
                               // trained beside it
    std::string adapterDir;    // a PEFT folder to go on from; rank to pattern are then its own
    std::string trainLayers; // "20-31,head": the blocks, "embedding" or "head" that are trained, or
                             // the blocks that get an adapter; empty: all
    TrainOrder train = TrainOrder::Together;
    std::int64_t blockSteps = 0; // of a turn with train blocks; 0: two rounds, and at least 20
    RecomputeChoice recompute = RecomputeChoice::Auto;
    // Rows of the head's matrix in a part, by which its sums over a larger vocabulary are formed;
    // decides bits. 0: in one, as earlier programs did and as a record without it says; -1: 8,192.
    // No setting.
    std::int64_t headPart = -1;
    KeepInputs keepInputs = KeepInputs::Bf16; // Int8 needs recompute block
    std::int64_t checkpointEvery = 0;         // steps; 0: not by steps
    std::int64_t checkpointMinutes = 15;      // after the last one; 0: not by time
    std::int64_t keepCheckpoints = 2;         // the newest; the best by evaluation stays, too
    bool keepBest = false; // an evaluation that is the best so far makes a checkpoint of its step

    DeviceChoice device = DeviceChoice::Auto;
    bool threadedDevice = false; // CPU device: streams are threads (see core/device)
    std::int64_t threads = 0;    // 0: decisions.md 18
    std::string policy = "auto";
    std::map<std::string, std::string> policyOptions;
    bool allowStale = false; // auto may choose a policy with updates that lag by a bounded number
                             // of steps; false: exact ones only
    bool allowOther = false; // auto may train by the first of LighterWay that fits where AdamW does
                             // not, or writes to an SSD in every step
    std::uint64_t deviceMemoryBytes = 0; // 0: decisions.md 18
    std::uint64_t hostMemoryBytes = 0;
    // Where and how much policies that keep state on an SSD may write; others leave it alone.
    // With several folders, on drives of their own, a step takes from all of them at once.
    std::vector<std::string> diskPaths;
    std::uint64_t diskBytes = 0;         // all folders together, needs one; 0: the free space there
    std::uint64_t maxDiskWriteBytes = 0; // the whole run, checkpoints included; 0: no limit
    double linkBytesPerSecond = 0.0;     // CPU device only; 0: not throttled

    bool operator==(const RunSpec&) const = default;
};

inline bool isAdapterRun(const RunSpec& spec) noexcept
{
    return spec.method == "lora" || spec.method == "qlora";
}

inline bool trainsInTurns(const RunSpec& spec) noexcept
{
    return spec.train == TrainOrder::Blocks;
}

// Is what is trained at a time a small part of the model? It stays on the device with its state,
// and the rest is only read.
inline bool isMostlyRead(const RunSpec& spec) noexcept
{
    return isAdapterRun(spec) || trainsInTurns(spec);
}

std::string toJson(const RunSpec& spec);
Result<RunSpec> runSpecFromJson(std::string_view json);

// Takes the fields of `now` that differ from `shown`; the others stay those of `given`, to the bit.
// An editor shows a part of a spec, with fewer digits; `shown`: its spec right after `given` filled
// it.
RunSpec edited(const RunSpec& given, const RunSpec& shown, const RunSpec& now);

// RunSpec::seqLen where it is 0, of a model that knows `maxPositions` of them.
constexpr std::int64_t defaultSeqLen(std::int64_t maxPositions) noexcept
{
    constexpr std::int64_t kUsual = 1024;
    return maxPositions < kUsual ? maxPositions : kUsual;
}

// Words of the command line and the run record, both ways.
std::string_view name(DataFormat v) noexcept;
std::string_view name(PrecisionChoice v) noexcept;
std::string_view name(RecomputeChoice v) noexcept;
std::string_view name(KeepInputs v) noexcept;
std::string_view name(Optimizer v) noexcept;
std::string_view name(WeightFormat v) noexcept;
std::string_view name(TrainOrder v) noexcept;
std::string_view name(ScheduleKind v) noexcept;
std::string_view name(DeviceChoice v) noexcept;
Result<DataFormat> parseDataFormat(std::string_view text);
Result<PrecisionChoice> parsePrecision(std::string_view text);
Result<RecomputeChoice> parseRecompute(std::string_view text);
// Do policy options ask for a second backward (clip-mode=two-pass)?
bool asksTwoPasses(const std::map<std::string, std::string>& policyOptions);
Result<KeepInputs> parseKeepInputs(std::string_view text);
Result<Optimizer> parseOptimizer(std::string_view text);
Result<WeightFormat> parseWeightFormat(std::string_view text);
Result<TrainOrder> parseTrainOrder(std::string_view text);
Result<ScheduleKind> parseSchedule(std::string_view text);
Result<DeviceChoice> parseDevice(std::string_view text);

// "6GiB", "200GB", "1500000"; B, KB, MB, GB, TB are powers of 1000, KiB ... TiB of 1024.
Result<std::uint64_t> parseBytes(std::string_view text);
// "12GB/s"
Result<double> parseRate(std::string_view text);

// Refuses a spec without opening a file: ranges, contradictions, methods that are not built yet (by
// name, never ignored). Policies and their options are the planner's: checkPolicy().
Status checkSpec(const RunSpec& spec);

} // namespace mr
