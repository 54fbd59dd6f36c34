#include "core/job/job_text.h"

#include "core/api/json_fields.h"
#include "core/api/json_text.h"
#include "core/job/job_weights.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

namespace mr {
namespace {

using Json = nlohmann::json;
constexpr const char* kKind = "millrace-torchrun";
constexpr IntRange kJobSteps{0, std::int64_t{1} << 40};

// As text: the records of runs have their own reader.
Json runFields(const JobSource& source)
{
    RunSpec spec = source.spec();
    return {{"uuid", source.record.uuid}, {"name", source.record.name},
        {"dataset", source.record.datasetPath}, {"prompts", source.record.prompts},
        {"config", toJson(spec)}};
}

Json optimizerFields(const JobSource& source)
{
    const RunSpec& spec = source.spec();
    Json fields = {{"name", "adamw"}, {"betas", {spec.beta1, spec.beta2}}, {"eps", spec.eps},
        {"weight_decay", spec.weightDecay}, {"clip_norm", spec.clipNorm},
        {"updates", source.progress.updateCount}, {"lora_b_rate", 1.0}, {"trained", Json::array()},
        {"decayed", Json::array()}};
    if (isAdapterRun(spec))
        fields["lora_b_rate"] = spec.loraPlus;
    for (const JobTensor& tensor : jobTensors(source.setup.table)) {
        fields["trained"].push_back(tensor.name);
        if (tensor.decayed)
            fields["decayed"].push_back(tensor.name);
    }
    return fields;
}

// A job cannot count minutes alike in all its processes, so it saves by steps.
std::int64_t checkpointEvery(const JobSource& source)
{
    constexpr std::int64_t kCheckpoints = 10;
    const std::int64_t asked = source.spec().checkpointEvery;
    return asked > 0 ? asked : std::max<std::int64_t>(1, source.stepsLeft() / kCheckpoints);
}

} // namespace

std::string jobText(const JobSource& source)
{
    const RunSpec& spec = source.spec();
    const bool isWide = source.setup.step.precision == Precision::F32;
    const Json job = {{"kind", kKind}, {"format", kJobFormat}, {"run", runFields(source)},
        {"method", isAdapterRun(spec) ? "lora" : "full"}, {"from_step", source.progress.step},
        {"steps", spec.steps}, {"seq_len", spec.seqLen}, {"micro_batch", spec.microBatch},
        {"accumulate", spec.accumulate}, {"packed", spec.pack},
        {"precision", isWide ? "fp32" : "bf16"}, {"seed", spec.seed},
        {"loss", "sum of the cross-entropies of a step / its trained tokens"},
        {"optimizer", optimizerFields(source)},
        {"schedule", {{"kind", name(spec.schedule)}, {"rate", spec.learningRate},
                         {"warmup_steps", spec.warmupSteps}, {"total_steps", spec.steps}}},
        {"checkpoint_blocks", source.setup.step.recompute != Recompute::None},
        {"eval_every", spec.evalEvery}, {"checkpoint_every", checkpointEvery(source)},
        {"keep_checkpoints", spec.keepCheckpoints}, {"base_hash", source.progress.baseHash}};
    return job.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<JobHeader> jobHeaderFrom(std::string_view text, const std::string& source)
{
    MR_ASSIGN(const Json json, parseJson(text, source));
    JsonFields fields(json, source);
    if (fields.text("kind", "") != kKind)
        fields.fail("kind", "is not " + std::string(kKind) + "; name the out/ folder of a job");
    (void)fields.requiredInteger("format", {kJobFormat, kJobFormat});
    JobHeader header;
    header.fromStep = fields.requiredInteger("from_step", kJobSteps);
    header.steps = fields.requiredInteger("steps", kJobSteps);
    header.baseHash = fields.text("base_hash", "");
    const Json* run = fields.find("run");
    if (run == nullptr)
        fields.fail("run", "is missing");
    MR_TRY(fields.status());
    JsonFields record(*run, source + ": run");
    header.name = record.text("name", "");
    header.prompts = record.boolean("prompts", false);
    const std::string config = record.text("config", "");
    MR_TRY(record.status());
    MR_ASSIGN(header.spec, runSpecFromJson(config));
    MR_TRY(checkSpec(header.spec));
    return header;
}

} // namespace mr
