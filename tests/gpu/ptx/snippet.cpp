#include "gpu/ptx/snippet.h"

#include "gpu/ptx/decode.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

namespace mr::ptx {
namespace {

// Begins where a sector does, as a card's memory.
struct Memory {
    explicit Memory(const std::vector<std::byte>& bytes)
        : data(static_cast<std::byte*>(std::aligned_alloc(256, (bytes.size() + 255) / 256 * 256)),
              &std::free)
    {
        std::copy(bytes.begin(), bytes.end(), data.get());
    }

    std::unique_ptr<std::byte, void (*)(void*)> data;
};

} // namespace

std::string textOf(const Snippet& snippet)
{
    return ".version 9.0\n.target sm_80\n.address_size 64\n" + snippet.shared +
           ".entry snippet(.param .u64 pin, .param .u64 pout)\n{\n"
           ".reg .pred %p<16>;\n.reg .b16 %h<64>;\n.reg .b32 %r<64>;\n.reg .f32 %f<64>;\n"
           ".reg .b64 %d<64>;\n.reg .f64 %e<64>;\n.reg .b64 %in;\n.reg .b64 %out;\n"
           "ld.param.u64 %in, [pin];\nld.param.u64 %out, [pout];\n" +
           snippet.body + "\nret;\n}\n";
}

Status runSnippet(const Snippet& snippet, const std::vector<std::byte>& in,
    std::vector<std::byte>& out, Counters* counters)
{
    const std::string text = textOf(snippet);
    MR_ASSIGN(Module module, readPtx(text));
    MR_ASSIGN(Program program, decode(module, module.entries.front()));
    const Memory from(in);
    const Memory to(out);
    GlobalMemory memory;
    memory.add(from.data.get(), in.size(), "in", snippet.inWritten);
    memory.add(to.data.get(), out.size(), "out", snippet.outWritten);
    Launch launch;
    launch.program = &program;
    launch.grid = snippet.grid;
    launch.block = snippet.block;
    launch.dynamicShared = snippet.dynamicShared;
    launch.memory = &memory;
    launch.freedom = snippet.freedom;
    launch.counters = counters;
    launch.blocks = snippet.blocks.empty() ? nullptr : &snippet.blocks;
    launch.stepLimit = snippet.stepLimit;
    launch.parameters.resize(16);
    const std::array<std::byte*, 2> pointers = {from.data.get(), to.data.get()};
    std::memcpy(launch.parameters.data(), pointers.data(), sizeof pointers);
    std::vector<std::uint64_t> executed(program.steps.size());
    launch.executed = &executed;
    const Status status = runGrid(launch);
    for (std::size_t i = 0; i < executed.size(); ++i)
        if (executed[i] > 0)
            instructionsRun().insert(program.texts[i]);
    std::copy_n(to.data.get(), out.size(), out.begin());
    return status;
}

std::set<std::string>& instructionsRun()
{
    static std::set<std::string> names;
    return names;
}

} // namespace mr::ptx
