// Needs of a run before it starts: exact bytes by tier and kind, a forecast of the step.
//
// Threads  Any; reads the model's config (not its weights) and looks at the machine.
// Errors   InvalidArgument for a spec that cannot be planned. A plan that does not fit is a
//          report with fits == false that names the tier that binds and changes that would help.

#pragma once

#include <millrace/library.h>
#include <millrace/run_reader.h>
#include <millrace/run_spec.h>
#include <millrace/status.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mr {

struct PlanBytes {
    std::string kind; // "weights", "gradients", "optimizer state", "activations", ...
    std::uint64_t bytes = 0;
};

struct PlanTier {
    std::string tier; // "device", "host", "disk"
    std::uint64_t budgetBytes = 0;
    std::uint64_t totalBytes = 0; // the sum over kinds: exact
    std::vector<PlanBytes> kinds;
};

struct PlanGroupBytes {
    std::string tier; // as in PlanTier
    std::string kind;
    std::uint64_t bytes = 0;
};

// Where the bytes of one layer are. The last one, "shared", holds the rest: slots that layers take
// in turns, activations, batches. All of them add up to the tiers.
struct PlanGroup {
    std::string name; // "embedding", "block 0", ..., "head", "shared"
    std::vector<PlanGroupBytes> bytes;
};

// A policy as the command line and records call it, and in plain words: "state in RAM".
struct PolicyName {
    std::string name;
    std::string plainName;
};

// One way to train every weight in less memory, offered where AdamW's state does not fit or is
// written to an SSD in each step. Nothing is written there then. Each way changes what a run
// learns, so none is taken unasked.
struct LighterWay {
    bool compactState = false; // AdamW, its state in 5.25 bytes
    bool blocks = false;       // AdamW, one block after the other; with neither the next two
    Optimizer optimizer = Optimizer::AdamW;
    WeightFormat weights = WeightFormat::Auto;
    std::string policy;           // that `auto` takes then
    std::uint64_t hostBytes = 0;  // of the plan
    double tokensPerSecond = 0.0; // forecast; 0: not known
};

struct PlanReport {
    std::string method; // "full", "blocks" (in turn), "layers" (some of the model), "lora" or
                        // "qlora"
    std::string policy;
    bool exact = true;
    std::string inexactBy; // the option that makes it so; empty: none, or an earlier program's
    int maxStaleSteps = 0;
    bool fits = false;
    std::string limit;               // "device memory: 1.8 GiB short"; empty if it fits
    std::vector<std::string> advice; // sentences, each one change
    std::vector<LighterWay> lighter; // that fit; the nearest to AdamW first
    std::string reason;              // why `auto` chose this policy, or the options fitted to one
                                     // that was asked for; else empty
    std::string device;              // name
    bool simulatedLink = false;
    std::string precision;              // "bf16", "fp32", "fp8" or "fp8 (emulated)"
    std::string recompute;              // "none", "cheap" or "block"
    std::string optimizer;              // "factored, weights 24bit"; empty: adamw
    std::int64_t parameters = 0;        // of the model
    std::int64_t trainedParameters = 0; // the part that is trained, or those of the adapter
    std::int64_t steps = 0;
    std::int64_t tokensPerStep = 0; // without padding known: seqLen * microBatch * accumulate
    std::vector<PlanTier> tiers;
    std::vector<PlanGroup> groups; // in the order of the traversal; empty: an earlier program's
    // The most that the program will hold: the tiers in the machine's memory, the memory it holds
    // now, and the pieces that loading, checkpoints and hashes go through. 0: an earlier program's.
    std::uint64_t processBytes = 0;
    std::uint64_t checkpointBytes = 0;
    // The most that lie there at once, the best one included; while one is written it is one more.
    // 0: an earlier program's.
    std::int64_t checkpointsKept = 0;
    std::int64_t h2dBytesPerStep = 0; // exact
    std::int64_t d2hBytesPerStep = 0;
    std::int64_t diskReadBytesPerStep = 0; // exact; of policies that keep state on a disk
    std::int64_t diskWriteBytesPerStep = 0;
    std::uint64_t diskWriteBytesOfRun = 0; // the scratch file filled once, all steps, all
                                           // checkpoints and the model; 0: steps are not known
    std::string wear;             // sentences on the drive's wear; empty: steps write nothing there
    double predictedStepMs = 0.0; // forecast; 0: no rates known
    double predictedComputeMs = 0.0;
    std::array<double, kStallCauses> predictedStallMs{};
};

// Checks that the policy is built and takes these options with these values; for "auto", that one
// of the policies it chooses from does. The error lists the policies built, or the options taken.
Status checkPolicy(const RunSpec& spec);

// Chooses values for members of `spec` that are Auto or zero (decisions.md 17, 18), needing the
// model's config and the machine. `trainRows`: micro-batch rows in an epoch, sequences or packed
// rows; 0: unknown, then steps stays 0 when it depends on it.
Result<RunSpec> resolveSpec(const RunSpec& spec, std::int64_t trainRows);

// Reads and tokenises the data of a run as the run will. InvalidArgument and Io as of the run.
Result<DataReport> inspectRunData(const RunSpec& spec);

// `spec` may be resolved or not.
Result<PlanReport> planRun(const RunSpec& spec);
// One report per policy that is built, fastest first; those that do not fit last.
Result<std::vector<PlanReport>> planAllPolicies(const RunSpec& spec);

// The methods that a run of this model can choose from: full fine-tuning, the layers of the spec if
// it names some, and an adapter. Options of adapters count for the adapter alone, and may stand in
// a spec that trains the model itself.
std::vector<RunSpec> specsOfMethods(const RunSpec& spec);
// A report for each of specsOfMethods(), under the policy of the spec: in its precision, or the
// machine's, and in bf16. One that cannot be planned has fits == false and says why in `limit`.
// The error of the first if none can.
Result<std::vector<PlanReport>> planAllMethods(const RunSpec& spec);

// `spec` with the settings of a way: policy `auto`, no scratch folder.
RunSpec withLighterWay(RunSpec spec, const LighterWay& way);

// "34560 trained parameters of 260032", or the model's alone where all are trained.
std::string parameterWords(const PlanReport& report);

std::string toJson(const PlanReport& report);
Result<PlanReport> planReportFromJson(std::string_view json);

} // namespace mr
