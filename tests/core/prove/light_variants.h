// Runs by light optimizers that may not differ in a bit from the one under `resident`.

#pragma once

#include "core/prove/tiny_device.h"

#include <map>
#include <string>

namespace mr {

struct LightVariant {
    const char* name;
    const char* policy;
    CpuDeviceOptions::Mode mode = CpuDeviceOptions::Mode::Inline;
    int threads = 1;
    Recompute recompute = Recompute::Block;
    std::map<std::string, std::string> options = {};

    // The run of `base` as this variant makes it.
    TinyRun of(const TinyRun& base) const
    {
        TinyRun run = base;
        run.policy = policy;
        run.options.insert(options.begin(), options.end());
        run.recompute = base.codedInputs ? Recompute::Block : recompute;
        run.disk.store.verify = DiskVerify::All;
        return run;
    }
};

// Embedding and head on the host, in tiles of one to three parts of the vocabulary.
inline const LightVariant kTiledVariants[] = {
    {"resident by micro-batch", "resident", CpuDeviceOptions::Mode::Inline, 2, Recompute::None,
        {{"order", "by-microbatch"}}},
    {"one part", "streamed", CpuDeviceOptions::Mode::Threaded, 2, Recompute::Block,
        {{"vocabulary", "host"}, {"tile", "2KiB"}}},
    {"two parts", "streamed", CpuDeviceOptions::Mode::Threaded, 2, Recompute::Block,
        {{"vocabulary", "host"}, {"tile", "6KiB"}}},
    {"three parts, all blocks stay", "streamed", CpuDeviceOptions::Mode::Threaded, 1,
        Recompute::None, {{"vocabulary", "host"}, {"weights-on-device", "1"}}},
    {"one buffer", "streamed", CpuDeviceOptions::Mode::Inline, 1, Recompute::Block,
        {{"vocabulary", "host"}, {"buffers", "1"}}},
    {"by micro-batch", "streamed", CpuDeviceOptions::Mode::Threaded, 2, Recompute::Block,
        {{"vocabulary", "host"}, {"order", "by-microbatch"}, {"tile", "6KiB"}}},
    {"beside a disk", "ssd-vertical", CpuDeviceOptions::Mode::Threaded, 2, Recompute::Block,
        {{"vocabulary", "host"}, {"weights-on-disk", "1"}, {"boundaries-on-disk", "1"},
            {"tile", "6KiB"}}},
};

// None of these may change a bit.
inline const LightVariant kLightVariants[] = {
    {"resident, 2 threads", "resident", CpuDeviceOptions::Mode::Inline, 2},
    {"resident, 7 threads, threaded", "resident", CpuDeviceOptions::Mode::Threaded, 7,
        Recompute::None},
    {"resident, by micro-batch", "resident", CpuDeviceOptions::Mode::Threaded, 2, Recompute::None,
        {{"order", "by-microbatch"}}},
    {"zero-offload", "zero-offload", CpuDeviceOptions::Mode::Threaded, 2},
    {"zero-offload, small tiles, by micro-batch", "zero-offload", CpuDeviceOptions::Mode::Threaded,
        2, Recompute::Cheap, {{"tile", "8KiB"}, {"order", "by-microbatch"}}},
    {"streamed", "streamed", CpuDeviceOptions::Mode::Inline, 1},
    {"streamed, threaded", "streamed", CpuDeviceOptions::Mode::Threaded, 2},
    {"streamed, tiles of 1,024", "streamed", CpuDeviceOptions::Mode::Threaded, 2, Recompute::Block,
        {{"tile", "2KiB"}}},
    {"streamed, tiles of 3,072, one buffer", "streamed", CpuDeviceOptions::Mode::Threaded, 2,
        Recompute::Block, {{"tile", "24KiB"}, {"buffers", "1"}}},
    {"streamed, tiles of 8,192, boundaries on the device", "streamed",
        CpuDeviceOptions::Mode::Threaded, 1, Recompute::None,
        {{"tile", "64KiB"}, {"boundary", "device"}}},
    {"streamed, by micro-batch", "streamed", CpuDeviceOptions::Mode::Threaded, 2, Recompute::Block,
        {{"order", "by-microbatch"}, {"tile", "4KiB"}}},
    {"streamed, two of three blocks stay, one whole", "streamed", CpuDeviceOptions::Mode::Threaded,
        2, Recompute::Block,
        {{"weights-on-device", "0.7"}, {"state-on-device", "0.35"}, {"tile", "8KiB"}}},
    {"ssd-vertical", "ssd-vertical", CpuDeviceOptions::Mode::Threaded, 2, Recompute::Block,
        {{"tile", "8KiB"}}},
    {"ssd-vertical, weights too", "ssd-vertical", CpuDeviceOptions::Mode::Threaded, 2,
        Recompute::Block, {{"weights-on-disk", "1"}, {"tile", "4KiB"}}},
    {"ssd-vertical, all but gradients", "ssd-vertical", CpuDeviceOptions::Mode::Inline, 1,
        Recompute::Block,
        {{"weights-on-disk", "0.5"}, {"boundaries-on-disk", "1"}, {"disk-share", "0.7"},
            {"tile", "24KiB"}}},
    {"ssd-vertical, one buffer, some blocks stay", "ssd-vertical", CpuDeviceOptions::Mode::Threaded,
        2, Recompute::Block,
        {{"weights-on-disk", "1"}, {"weights-on-device", "0.4"}, {"buffers", "1"},
            {"tile", "8KiB"}}},
    {"ssd-vertical, vocabulary alone", "ssd-vertical", CpuDeviceOptions::Mode::Threaded, 2,
        Recompute::Block, {{"disk-groups", "vocabulary"}, {"tile", "8KiB"}}},
    {"streamed, nothing streams", "streamed", CpuDeviceOptions::Mode::Threaded, 2, Recompute::Block,
        {{"weights-on-device", "1"}, {"state-on-device", "1"}}},
};

struct LightFormat {
    const char* name;
    DType compute;
    StateCodec state;
    std::int64_t up; // bytes a streamed element moves in a step
    std::int64_t down;
};

inline constexpr LightFormat kLightFormats[] = {
    {"fp32", DType::F32, StateCodec::Halves, 12, 4},
    {"bf16, halves", DType::BF16, StateCodec::Halves, 6, 4},
    {"bf16, 24 bit", DType::BF16, StateCodec::Bits24, 5, 3},
    {"bf16, at random", DType::BF16, StateCodec::Random16, 4, 2},
};

// Not one without backward, which has tests of its own.
constexpr bool updatesBehindBackward(const OptimizerInfo& optimizer)
{
    return optimizer.isLight && !optimizer.isForwardOnly;
}

inline TinyRun lightRun(Optimizer optimizer, const LightFormat& format)
{
    TinyRun run;
    run.compute = format.compute;
    run.light = {optimizer, format.state};
    return run;
}

} // namespace mr
