#include "core/plan/task_traits.h"

#include <array>
#include <cstddef>

namespace mr {

namespace {

constexpr std::uint8_t bit(Lane lane)
{
    return static_cast<std::uint8_t>(1U << static_cast<unsigned>(lane));
}

constexpr std::uint8_t bit(DiskRegion region)
{
    return static_cast<std::uint8_t>(1U << static_cast<unsigned>(region));
}

constexpr std::uint8_t kCompute = bit(Lane::Compute);
constexpr std::uint8_t kCopyIn = bit(Lane::CopyIn);
constexpr std::uint8_t kCopyOut = bit(Lane::CopyOut);
constexpr std::uint8_t kHost = bit(Lane::Host);
constexpr std::uint8_t kDiskIn = bit(Lane::DiskIn);
constexpr std::uint8_t kDiskOut = bit(Lane::DiskOut);
constexpr std::uint8_t kDiskWeights = bit(Lane::DiskWeights);
constexpr std::uint8_t kDiskBoundaries = bit(Lane::DiskBoundaries);
constexpr std::uint8_t kWeights = bit(DiskRegion::Weights);
constexpr std::uint8_t kGradient = bit(DiskRegion::Gradient);
constexpr std::uint8_t kUpdated = bit(DiskRegion::State) | bit(DiskRegion::Weights);

using K = TaskKind;
using P = Place;
constexpr auto kNone = TaskRange::None;
constexpr auto kPart = TaskRange::Part;
constexpr auto kWhole = TaskRange::WholeGroup;
constexpr auto kNothing = TaskChanges::Nothing;
constexpr auto kWithWindows = TaskChanges::WithWindows;
constexpr auto kAlways = TaskChanges::Always;
constexpr bool kMicro = true;
constexpr bool kStep = false;

// In the order of TaskKind: kind, name, lanes, range, has a micro-batch, changes, reads, writes.
constexpr std::array kTable{
    TaskTraits{K::FetchBatch, "FetchBatch", kCopyIn, kNone, kMicro, kNothing, {}, P::Batch},
    TaskTraits{K::ReadFromDisk, "ReadFromDisk", kDiskIn, kPart, kStep, kNothing, P::Disk, P::Stage,
        kUpdated | kGradient},
    TaskTraits{K::WriteToDisk, "WriteToDisk", kDiskOut, kPart, kStep, kAlways, P::Stage, P::Disk,
        kUpdated},
    TaskTraits{K::ReadWeights, "ReadWeights", kDiskWeights, kPart, kStep, kNothing, P::Disk,
        P::Stage, kWeights},
    TaskTraits{
        K::ReadFrozen, "ReadFrozen", kDiskWeights, kPart, kStep, kNothing, P::Disk, P::Stage},
    TaskTraits{K::SpillGradient, "SpillGradient", kDiskOut, kPart, kStep, kNothing, P::Stage,
        P::Disk, kGradient},
    TaskTraits{K::FetchWeights, "FetchWeights", kCopyIn, kPart, kStep, kNothing,
        P::HostWeights | P::Stage, P::Weights},
    TaskTraits{
        K::FetchFrozen, "FetchFrozen", kCopyIn, kPart, kStep, kNothing, P::Stage, P::Weights},
    TaskTraits{K::FetchRows, "FetchRows", kCopyIn, kNone, kMicro, kNothing,
        P::Batch | P::HostWeights, P::Boundary},
    TaskTraits{K::FetchState, "FetchState", kCopyIn, kPart, kStep, kNothing,
        P::HostState | P::HostWeights | P::HostGradient, P::State},
    TaskTraits{K::StoreState, "StoreState", kCopyOut, kPart, kStep, kAlways, P::State,
        P::HostState | P::HostWeights},
    TaskTraits{K::Forward, "Forward", kCompute, kWhole, kMicro, kNothing,
        P::Batch | P::Weights | P::Boundary, P::Boundary | P::Activations},
    TaskTraits{K::Backward, "Backward", kCompute, kWhole, kMicro, kNothing,
        P::Batch | P::Weights | P::Boundary | P::Activations, P::Activations | P::GradientSum},
    TaskTraits{K::FinishGradient, "FinishGradient", kCompute, kWhole, kStep, kNothing,
        P::GradientSum | P::WindowSum, P::FinishedGradient | P::PackedGradient},
    TaskTraits{K::SaveBoundary, "SaveBoundary", kCopyOut, kNone, kMicro, kNothing, P::Boundary,
        P::BoundaryHome | P::Stage},
    TaskTraits{K::LoadBoundary, "LoadBoundary", kCopyIn, kNone, kMicro, kNothing,
        P::BoundaryHome | P::Stage, P::Boundary},
    TaskTraits{K::SaveActivations, "SaveActivations", kCopyOut, kPart, kMicro, kNothing,
        P::Activations, P::HostActivations},
    TaskTraits{K::LoadActivations, "LoadActivations", kCopyIn, kPart, kMicro, kNothing,
        P::HostActivations, P::Activations},
    TaskTraits{K::WriteBoundary, "WriteBoundary", kDiskBoundaries, kNone, kMicro, kNothing,
        P::Stage, P::Disk | P::BoundaryHome},
    TaskTraits{K::ReadBoundary, "ReadBoundary", kDiskBoundaries, kNone, kMicro, kNothing,
        P::Disk | P::BoundaryHome, P::Stage},
    TaskTraits{K::SendGradient, "SendGradient", kCopyOut, kPart, kStep, kWithWindows,
        P::FinishedGradient | P::PackedGradient, P::HostGradient | P::Stage},
    TaskTraits{
        K::SendWeights, "SendWeights", kCopyOut, kPart, kStep, kNothing, P::Weights, P::Stage},
    TaskTraits{K::SelectColumns, "SelectColumns", kCopyOut, kNone, kStep, kAlways, P::Energies, {}},
    TaskTraits{K::PackComplement, "PackComplement", kCompute, kPart, kStep, kAlways,
        P::FinishedGradient, P::PackedGradient},
    TaskTraits{K::AccumulateOnHost, "AccumulateOnHost", kHost, kPart, kStep, kAlways,
        P::HostGradient | P::HostScalars, P::HostWindowSum},
    TaskTraits{K::AccumulateOnDevice, "AccumulateOnDevice", kCompute, kPart, kStep, kAlways,
        P::PackedGradient | P::Scalars, P::WindowSum},
    TaskTraits{K::UploadComplement, "UploadComplement", kCopyIn, kPart, kStep, kAlways,
        P::HostWeights, P::UploadStaging},
    TaskTraits{K::ScatterComplement, "ScatterComplement", kCompute, kPart, kStep, kAlways,
        P::UploadStaging, P::Weights},
    TaskTraits{K::MoveOwnership, "MoveOwnership", kCopyIn | kCopyOut, kPart, kStep, kAlways,
        P::State | P::HostState, P::State | P::HostState},
    TaskTraits{K::NormPart, "NormPart", kCompute | kHost, kPart, kStep, kWithWindows,
        P::FinishedGradient | P::HostGradient, P::Norms},
    TaskTraits{K::JoinNorm, "JoinNorm", kCompute | kHost, kNone, kStep, kWithWindows,
        P::Norms | P::HostScalars, P::Scalars | P::HostScalars},
    TaskTraits{K::SendScalars, "SendScalars", kCopyOut, kNone, kStep, kNothing, P::Scalars,
        P::HostScalars},
    TaskTraits{K::PrepareUpdate, "PrepareUpdate", kCompute, kWhole, kStep, kAlways,
        P::FinishedGradient | P::Scalars | P::Weights, {}},
    TaskTraits{K::UpdateOnDevice, "UpdateOnDevice", kCompute, kPart, kStep, kAlways,
        P::FinishedGradient | P::Scalars, P::Weights | P::State | P::Energies},
    TaskTraits{K::UpdateOnHost, "UpdateOnHost", kHost, kPart, kStep, kAlways,
        P::HostGradient | P::HostWindowSum | P::HostScalars,
        P::HostWeights | P::HostState | P::Stage},
};

static_assert(kTable.size() == kTaskKinds && [] {
    for (std::size_t i = 0; i < kTable.size(); ++i)
        if (kTable[i].kind != static_cast<TaskKind>(i) || kTable[i].name.empty() ||
            kTable[i].lanes == 0)
            return false;
    return true;
}());

} // namespace

const TaskTraits& traitsOf(TaskKind kind) noexcept
{
    return kTable[static_cast<std::size_t>(kind)];
}

} // namespace mr
