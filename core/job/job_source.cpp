#include "core/job/job_source.h"

#include "core/model/adapter_modules.h"
#include "core/save/checkpoint.h"
#include "core/telemetry/run_folder.h"

#include <millrace/session.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <system_error>

namespace mr {
namespace fs = std::filesystem;
namespace {

// Families whose tensors transformers 5.24 holds in memory under the names and in the shapes of
// their files. A family that is added here is compared first, by torchrun_job.py.
constexpr std::array<std::string_view, 20> kSameNames = {"Ernie4_5ForCausalLM",
    "Exaone4ForCausalLM", "GemmaForCausalLM", "Gemma2ForCausalLM", "Gemma3ForCausalLM",
    "Glm4ForCausalLM", "GraniteForCausalLM", "GraniteMoeHybridForCausalLM",
    "HunYuanDenseV1ForCausalLM", "LlamaForCausalLM", "Ministral3ForCausalLM", "MistralForCausalLM",
    "Olmo2ForCausalLM", "Olmo3ForCausalLM", "Phi3ForCausalLM", "Qwen2ForCausalLM",
    "Qwen3ForCausalLM", "Qwen3_5ForCausalLM", "SeedOssForCausalLM", "SmolLM3ForCausalLM"};

Status refuseJob(std::string message)
{
    return Status::error(ErrorKind::InvalidArgument, std::move(message));
}

constexpr const char* kResumeHere = "; continue it here with `millrace resume`";

// Fields of the spec that train.py has no counterpart for.
Status refuseSpec(const RunSpec& spec)
{
    if (spec.optimizer != Optimizer::AdamW)
        return refuseJob(fmt::format("the run trains with optimizer {}, and torch.optim has none "
                                     "with its state{}",
            name(spec.optimizer), kResumeHere));
    if (trainsInTurns(spec))
        return refuseJob(
            std::string("the run trains one block after the other (train blocks), which FSDP2 does "
                        "not") +
            kResumeHere);
    if (spec.method == "qlora")
        return refuseJob("the run trains beside a model in NF4, which fully_shard cannot cut; "
                         "export it with --to merged, and start a new run from that model");
    if (spec.precision == PrecisionChoice::Fp8)
        return refuseJob(
            std::string("the run computes in FP8, and the job would in BF16") + kResumeHere);
    if (spec.dora || !spec.savedModules.empty() || !spec.trainedTokens.empty())
        return refuseJob(fmt::format("the adapter has {}, which the job does not train{}",
            spec.dora ? "magnitudes (DoRA)"
                      : (spec.savedModules.empty() ? "trained rows of the embedding"
                                                   : "modules that are trained whole"),
            kResumeHere));
    return {};
}

Status refuseModel(const RunSetup& setup)
{
    const ModelConfig& config = setup.config;
    if (std::ranges::find(kSameNames, config.architecture) == kSameNames.end())
        return refuseJob(fmt::format("{}: the job does not know how transformers holds the tensors "
                                     "of {}, and so where their "
                                     "optimizer state belongs{}",
            setup.spec.modelDir, config.architecture, kResumeHere));
    const auto kinds = config.kinds();
    const auto isDelta = [](const BlockKind& kind) { return kind.isDelta(); };
    if (setup.spec.pack && std::ranges::any_of(kinds, isDelta))
        return refuseJob(
            setup.spec.modelDir +
            ": this model has blocks with a state, which transformers carries from one "
            "document of a packed row into the next" +
            kResumeHere);
    const auto isPart = [](const NamedTensor& tensor) { return tensor.isPart(); };
    if (std::ranges::any_of(setup.table.tensors, isPart))
        return refuseJob(setup.spec.modelDir +
                         ": a tensor of this model is trained in parts, by several layers" +
                         kResumeHere);
    return {};
}

Status refuseState(const RunSetup& setup, const RunProgress& progress)
{
    if (setup.memory.window.isActive())
        return refuseJob(fmt::format("the updates of policy {} come steps after their gradients, "
                                     "and the checkpoint holds some that are not made yet{}",
            setup.spec.policy, kResumeHere));
    if (setup.policy.stateCodec != StateCodec::Plain)
        return refuseJob(
            std::string("the run keeps its optimizer state in 8 bits, and the job would in 32") +
            kResumeHere);
    if (setup.policy.clipMode != ClipMode::Exact)
        return refuseJob(
            std::string("the run clips each group of weights by itself, and the job by one norm") +
            kResumeHere);
    if (progress.step >= setup.spec.steps)
        return refuseJob(
            fmt::format("the run has done all of its {} steps; there is nothing to continue",
                setup.spec.steps));
    return {};
}

Status refuseData(const JobSource& source)
{
    const TokenSet& train = source.data.train;
    MR_ASSIGN(const std::string hash, dataHash(train));
    if (source.progress.sampler.count == static_cast<std::uint64_t>(train.batchRows()) &&
        source.progress.dataHash == hash)
        return {};
    return refuseJob(source.record.datasetPath +
                     ": is not the data the run began with (its tokens differ); put that back");
}

Result<fs::path> lastCheckpoint(const fs::path& run, const RunSpec& spec)
{
    const auto all = listCheckpoints(run, spec.saveDir);
    if (all.empty())
        return refuseJob(run.string() + ": has no checkpoint to continue from yet");
    return all.front();
}

} // namespace

Result<JobSource> openJobSource(const fs::path& run)
{
    std::error_code error;
    if (!fs::exists(run / "run.json", error))
        return refuseJob(run.string() + ": is no run folder (it has no run.json); a job continues "
                                        "the run of one");
    JobSource source;
    MR_ASSIGN(const RunSpec recorded, readRunSpec(run.string()));
    MR_ASSIGN(source.record, readRunRecord(run.string()));
    MR_TRY(refuseSpec(recorded));
    MR_ASSIGN(source.checkpoint, lastCheckpoint(run, recorded));
    MR_ASSIGN(source.progress,
        examineCheckpoint(source.checkpoint, source.record.uuid, VerifyDepth::Bytes));
    // A record that does not say is of a run without a template.
    const RunSpec spec = withStyle(recorded, RowStyle::Plain);
    MR_ASSIGN(source.setup, setUpRun(spec, 0));
    MR_TRY(refuseModel(source.setup));
    MR_ASSIGN(source.data, readRunData(source.setup.spec, source.setup.config.vocab));
    MR_ASSIGN(source.setup, setUpRun(spec, source.data.train.batchRows()));
    MR_TRY(refuseState(source.setup, source.progress));
    MR_TRY(refuseData(source));
    return source;
}

} // namespace mr
