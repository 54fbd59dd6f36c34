#include "gpu/ptx/ptx_runtime.h"

#include "gpu/ptx/decode.h"
#include "gpu/runtime/fake_cudart.h"

#include <cuda_runtime_api.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace mr::ptx {
namespace {

struct Kernel {
    const void* binary = nullptr;
    std::string name;
    std::map<std::string, std::unique_ptr<Program>> programs; // by target
};

struct Registered {
    std::mutex mutex;                                           // guards programs
    std::map<const void*, std::vector<std::string_view>> texts; // of a binary, an architecture each
    std::map<const void*, std::vector<Module>> modules;         // of these, once they were read
    std::map<const void*, Kernel> kernels;                      // by the function of the host
    std::vector<MachineCode> code;
};

Registered& registered()
{
    static Registered all;
    return all;
}

// The layout of a fat binary: a header, then entries, each a header and its data.
struct FatHeader {
    std::uint32_t magic = 0;
    std::uint16_t version = 0;
    std::uint16_t headerBytes = 0;
    std::uint64_t bytes = 0; // of the entries
};
constexpr std::uint32_t kFatMagic = 0xba55ed50U;

struct FatEntry {
    std::uint16_t kind = 0; // 1: PTX
    std::uint16_t version = 0;
    std::uint32_t headerBytes = 0;
    std::uint64_t bytes = 0;
    std::array<std::uint16_t, 6> other = {};
    std::uint32_t architecture = 0; // 86
};
constexpr std::uint16_t kPtxKind = 1;
constexpr std::uint16_t kCodeKind = 2;

struct FatWrapper {
    std::uint32_t magic = 0;
    std::uint32_t version = 0;
    const std::byte* data = nullptr;
    void* name = nullptr;
};

std::vector<std::string_view> textsOf(const std::byte* data)
{
    std::vector<std::string_view> texts;
    FatHeader header;
    std::memcpy(&header, data, sizeof header);
    if (header.magic != kFatMagic)
        return texts;
    const std::byte* at = data + header.headerBytes;
    const std::byte* const end = at + header.bytes;
    while (at < end) {
        FatEntry entry;
        std::memcpy(&entry, at, sizeof entry);
        const char* const text = reinterpret_cast<const char*>(at + entry.headerBytes);
        if (entry.kind == kPtxKind)
            texts.emplace_back(text, strnlen(text, entry.bytes));
        else if (entry.kind == kCodeKind)
            registered().code.push_back({"sm_" + std::to_string(entry.architecture),
                {at + entry.headerBytes, entry.bytes}});
        at += entry.headerBytes + entry.bytes;
    }
    return texts;
}

Result<const std::vector<Module>*> modulesOf(const void* binary)
{
    std::vector<Module>& modules = registered().modules[binary];
    if (modules.empty())
        for (const std::string_view text : registered().texts[binary]) {
            MR_ASSIGN(Module module, readPtx(text));
            modules.push_back(std::move(module));
        }
    return &modules;
}

int capabilityOf(const std::string& target)
{
    return std::stoi(target.substr(3));
}

// The newest program that a card of the target takes, as a driver chooses.
Result<KernelText> textOf(const Kernel& kernel, const std::string& target)
{
    MR_ASSIGN(const std::vector<Module>* modules, modulesOf(kernel.binary));
    KernelText best;
    for (const Module& module : *modules) {
        const Entry* const entry = module.find(kernel.name);
        const int capability = capabilityOf(module.target);
        if (entry && capability <= capabilityOf(target) &&
            (!best.module || capability > capabilityOf(best.module->target)))
            best = {&module, entry};
    }
    if (best.entry)
        return best;
    return Status::error(
        ErrorKind::InvalidArgument, fmt::format("{} was not compiled for {}", kernel.name, target));
}

Result<const Program*> programOf(Kernel& kernel, const std::string& target)
{
    const std::lock_guard lock(registered().mutex);
    std::unique_ptr<Program>& program = kernel.programs[target];
    if (program)
        return program.get();
    MR_ASSIGN(const KernelText text, textOf(kernel, target));
    MR_ASSIGN(Program decoded, decode(*text.module, *text.entry));
    program = std::make_unique<Program>(std::move(decoded));
    return program.get();
}

// The arguments of a launch, one after the other as PTX lays them out.
std::vector<std::byte> packed(const Program& program, void** arguments)
{
    std::vector<std::byte> bytes(program.parameterBytes);
    for (std::size_t i = 0; i < program.parameters.size(); ++i)
        std::memcpy(
            bytes.data() + program.parameters[i].offset, arguments[i], program.parameters[i].bytes);
    return bytes;
}

Result<const Program*> programAt(const void* function)
{
    const auto found = registered().kernels.find(function);
    if (found == registered().kernels.end())
        return Status::error(ErrorKind::Internal, "a kernel that is not registered");
    MR_ASSIGN(const Program* program, programOf(found->second, runtime().target));
    const auto other = runtime().instead.find(program->name);
    return other == runtime().instead.end() ? program : other->second;
}

Status launch(const cudaLaunchConfig_t& config, const Program* program,
    const std::vector<std::byte>& parameters)
{
    Runtime& all = runtime();
    MR_TRY(all.failure);
    ++all.launches[program->name];
    if (all.isDry) {
        all.dry.push_back(fmt::format("{} ({}, {}, {}) ({}, {}, {}) {}", program->name,
            config.gridDim.x, config.gridDim.y, config.gridDim.z, config.blockDim.x,
            config.blockDim.y, config.blockDim.z, config.dynamicSmemBytes));
        return {};
    }
    Launch run;
    run.program = program;
    run.grid = {config.gridDim.x, config.gridDim.y, config.gridDim.z};
    run.block = {config.blockDim.x, config.blockDim.y, config.blockDim.z};
    run.dynamicShared = config.dynamicSmemBytes;
    run.parameters = parameters;
    run.memory = &all.memory;
    run.freedom = all.freedom;
    run.counters = all.counters;
    run.stepLimit = all.stepLimit;
    std::vector<std::uint64_t>& executed = all.executed[program->name];
    executed.resize(program->steps.size());
    run.executed = &executed;
    std::vector<std::uint32_t> blocks;
    if (all.sample) {
        blocks = all.sample(run.grid);
        run.blocks = &blocks;
    }
    MR_TRY(runGrid(run));
    if (all.onLaunch)
        all.onLaunch(run);
    return {};
}

class Machine final : public test::KernelMachine
{
public:
    void onAllocated(const void* data, std::size_t bytes, bool isWritten) override
    {
        const std::lock_guard lock(m_mutex);
        runtime().memory.add(data, bytes, "memory", isWritten);
    }
    void onFreed(const void* data, std::size_t bytes) override
    {
        const std::lock_guard lock(m_mutex);
        runtime().memory.remove(data, bytes);
    }
    void onWritten(const void* data, std::size_t bytes) override
    {
        const std::lock_guard lock(m_mutex);
        runtime().memory.setWritten(data, bytes);
    }
    Work launch(const cudaLaunchConfig_t& config, const void* kernel, void** arguments) override
    {
        auto program = programAt(kernel);
        if (!program.ok())
            return [why = program.status()] { return remembered(why); };
        return [this, config, program = program.value(),
                   parameters = packed(*program.value(), arguments)] {
            const std::lock_guard lock(m_mutex);
            return remembered(ptx::launch(config, program, parameters));
        };
    }
    void setName(const void* data, std::size_t bytes, std::string name)
    {
        const std::lock_guard lock(m_mutex);
        runtime().memory.add(data, bytes, std::move(name), true);
    }

private:
    static std::string remembered(const Status& status)
    {
        if (!status.ok() && runtime().failure.ok())
            runtime().failure = status;
        return status.ok() ? std::string() : status.message();
    }

    std::mutex m_mutex; // guards runtime().memory, and so launches
};

Machine& machine()
{
    static Machine all;
    return all;
}

} // namespace

Runtime& runtime()
{
    static Runtime all;
    return all;
}

void installMachine()
{
    test::fakeCard().machine = &machine();
}

void nameMemory(const void* begin, std::size_t bytes, std::string name)
{
    machine().setName(begin, bytes, std::move(name));
}

Result<std::vector<const Program*>> programs()
{
    std::vector<const Program*> all;
    std::string unknown;
    for (auto& [function, kernel] : registered().kernels)
        if (auto program = programOf(kernel, runtime().target); program.ok())
            all.push_back(program.value());
        else
            unknown += program.status().message() + "\n";
    if (!unknown.empty())
        return Status::error(ErrorKind::InvalidArgument, unknown);
    return all;
}

Result<const Program*> programFor(const std::string& kernel, const std::string& target)
{
    for (auto& [function, found] : registered().kernels)
        if (found.name == kernel)
            return programOf(found, target);
    return Status::error(ErrorKind::InvalidArgument, kernel + " is not registered");
}

const std::vector<MachineCode>& machineCode()
{
    return registered().code;
}

Result<KernelText> kernelText(const void* function, const std::string& target)
{
    const auto found = registered().kernels.find(function);
    if (found == registered().kernels.end())
        return Status::error(ErrorKind::InvalidArgument, "a kernel that is not registered");
    return textOf(found->second, target);
}

std::vector<std::string> targets()
{
    std::set<std::string> all;
    for (const auto& [binary, texts] : registered().texts)
        for (const std::string_view text : texts) {
            const std::size_t at = text.find(".target ") + 8;
            all.emplace(text.substr(at, text.find_first_of(", \n", at) - at));
        }
    return {all.begin(), all.end()};
}

} // namespace mr::ptx

using namespace mr::ptx;

extern "C" {

void** __cudaRegisterFatBinary(void* wrapper)
{
    const std::byte* const data = static_cast<FatWrapper*>(wrapper)->data;
    registered().texts[data] = textsOf(data);
    return reinterpret_cast<void**>(const_cast<std::byte*>(data));
}

void __cudaRegisterFatBinaryEnd(void**) {}

void __cudaUnregisterFatBinary(void**) {}

void __cudaRegisterFunction(void** binary, const char* function, char*, const char* name, int,
    uint3*, uint3*, dim3*, dim3*, int*)
{
    Kernel& kernel = registered().kernels[function];
    kernel.binary = binary;
    kernel.name = name;
}

cudaError_t __cudaGetKernel(cudaKernel_t*, const void*)
{
    return cudaErrorNotSupported;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, std::size_t, cudaStream_t)
{
    return cudaErrorNotSupported; // launches go by cudaLaunchKernelExC
}

cudaError_t __cudaPopCallConfiguration(dim3*, dim3*, std::size_t*, void*)
{
    return cudaErrorNotSupported;
}
}
