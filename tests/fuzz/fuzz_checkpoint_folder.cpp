// Loads a checkpoint folder after mutations, a line each:
//
//     f FILE AT BIT    flips a bit            x FILE BYTES    cuts it there
//     a FILE BYTES     adds bytes             g FILE          is gone
//     s FILE _ FILE    swaps two              d FILE          a folder in its place
//     e FILE           empties it             p FILE          a pipe in its place
//     l FILE           a link to itself, moved out of the checkpoint
//     L FILE           a link to a file of somebody else
//     P FILE           bytes of another file
//     j PLACE JSON     a value in state.json  m, M FILE       a tensor file with an odd header
//     S                the manifest is written anew
//
// FILE counts kFiles. Lines that say nothing else are passed over.

#include "core/device/cpu/cpu_device.h"
#include "core/prove/exact_check.h"
#include "core/prove/plain_run_inputs.h"
#include "core/save/checkpoint.h"
#include "core/step/step_executor.h"
#include "fuzz/fuzz_rig.h"
#include "fuzz/targets.h"

#include <sys/stat.h>

#include <array>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

namespace mr::fuzz {
namespace fs = std::filesystem;
namespace {

using FolderJson = nlohmann::json;

constexpr std::array<const char*, 8> kFiles = {"manifest.json", "state/state.json",
    "state/state.safetensors", "state/window.safetensors", "model/model.safetensors",
    "model/config.json", "state", "model"};
constexpr const char* kRun = "the run";

std::string contents(const fs::path& file)
{
    std::error_code error;
    if (!fs::is_regular_file(file, error))
        return {};
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

void put(const fs::path& file, const std::string& text)
{
    std::ofstream(file, std::ios::binary) << text;
}

// A run amid its second window, and its checkpoint.
class Bench
{
public:
    Bench()
    {
        CpuDeviceOptions options;
        options.memoryBytes = std::size_t{64} << 20;
        m_device = std::move(makeCpuDevice(options)).value();
        TinyRun tiny;
        tiny.policy = "zenflow";
        tiny.options = {{"interval", "3"}, {"warmup", "1"}, {"urgent", "0.3"}, {"tile", "4KiB"}};
        auto created = PlainRun::create(*m_device, plainRunSpec(tiny));
        require(created.ok(), "no run to load into");
        m_run = std::move(created).value();
        require(installCheapWeights(*m_run).ok(), "no weights");
        for (int i = 0; i < kSteps; ++i)
            step();
        m_folder.write("none/nothing", "to carry over");
        RunProgress progress;
        progress.step = kSteps;
        progress.carry = m_run->carry();
        progress.sampler = {1, 0, 3, 60};
        auto written = writeCheckpoint(context(), m_folder.path(), progress);
        require(written.ok(), written.status().message().c_str());
        m_checkpoint = written.value().path;
        const fs::path kept = m_folder.path() / "kept";
        fs::copy(m_checkpoint, kept, fs::copy_options::recursive);
        m_folder.write("outside/secret", "of somebody else");
        auto loaded = load();
        require(loaded.ok(), loaded.status().message().c_str());
    }

    void restore() const
    {
        fs::remove_all(m_checkpoint);
        fs::remove_all(outside("moved"));
        fs::copy(m_folder.path() / "kept", m_checkpoint, fs::copy_options::recursive);
    }

    Result<RunProgress> load() { return loadCheckpoint(context(), m_checkpoint); }
    fs::path outside(const char* name) const { return m_folder.path() / "outside" / name; }
    const fs::path& checkpoint() const { return m_checkpoint; }
    fs::path file(std::size_t index) const { return m_checkpoint / kFiles[index % kFiles.size()]; }

    // Does a file differ from the one that was written?
    bool isChanged() const
    {
        const fs::path kept = m_folder.path() / "kept";
        for (std::size_t i = 0; i < kFiles.size(); ++i) {
            const fs::path now = file(i);
            std::error_code error;
            const fs::path was = kept / kFiles[i];
            if (fs::symlink_status(now, error).type() != fs::symlink_status(was, error).type())
                return true;
            if (fs::is_regular_file(was, error) && contents(now) != contents(was))
                return true;
        }
        return false;
    }

private:
    static constexpr int kSteps = 6;

    CheckpointContext context()
    {
        return {m_run->spec().config, m_run->table(), const_cast<RunMemory&>(m_run->memory()),
            m_run->executor(), m_folder.path() / "none", kRun};
    }

    void step()
    {
        const auto micros = randomBatch(m_run->spec().config.vocab, m_run->spec().micro);
        StepInputs inputs;
        inputs.micros = micros;
        inputs.lossScale = 1.0F / 32.0F;
        inputs.clipNorm = m_run->spec().clipNorm;
        const std::int64_t count = m_run->executor().window()->updates().state.deviceUpdates + 1;
        inputs.factors = adamwFactors(m_run->spec().adamw, m_run->spec().learningRate, count);
        require(m_run->step(inputs).ok(), "a step failed");
    }

    FuzzFolder m_folder;
    std::unique_ptr<Device> m_device;
    std::unique_ptr<PlainRun> m_run;
    fs::path m_checkpoint;
};

void setState(const Bench& bench, const std::string& place, const std::string& value)
{
    const fs::path file = bench.file(1);
    FolderJson state = FolderJson::parse(contents(file), nullptr, false);
    const FolderJson now = FolderJson::parse(value, nullptr, false);
    if (state.is_discarded() || now.is_discarded())
        return;
    try {
        state[FolderJson::json_pointer(place)] = now;
    } catch (const FolderJson::exception&) {
        return; // no such place
    }
    put(file, state.dump(1));
}

std::string oddTensors(std::size_t number)
{
    FolderJson header = {{"low.0", {{"dtype", "I16"}, {"shape", {2}}, {"data_offsets", {0, 4}}}},
        {"m.0", {{"dtype", "F32"}, {"shape", {number}}, {"data_offsets", {4, number}}}}};
    const std::string text = header.dump();
    const std::uint64_t length = number % 3 == 0 ? number : text.size();
    std::string bytes(reinterpret_cast<const char*>(&length), sizeof length);
    return bytes + text + std::string(number % 64, '\1');
}

// Precondition: `index` names a regular file.
void changeFile(
    const Bench& bench, char op, std::size_t index, std::size_t number, std::size_t other)
{
    const fs::path file = bench.file(index);
    std::string text = contents(file);
    if (op == 'f' && !text.empty())
        text[number % text.size()] =
            static_cast<char>(text[number % text.size()] ^ (1 << other % 8));
    if (op == 'x')
        text.resize(text.empty() ? 0 : number % text.size());
    if (op == 'a')
        text.append(number % 4096 + 1, 'a');
    if (op == 'e')
        text.clear();
    if (op == 'P')
        text = contents(bench.file(number));
    if (op == 'm' || op == 'M')
        text = oddTensors(number);
    put(file, text);
}

void replaceFile(const Bench& bench, char op, std::size_t index, std::size_t other)
{
    std::error_code error;
    const fs::path file = bench.file(index);
    const fs::path moved = bench.outside("moved");
    if (op == 's') {
        const fs::path third = bench.checkpoint() / "third";
        fs::rename(file, third, error);
        fs::rename(bench.file(other), file, error);
        fs::rename(third, bench.file(other), error);
        return;
    }
    if (op == 'l') {
        fs::remove_all(moved, error);
        fs::rename(file, moved, error);
        fs::create_symlink(moved, file, error);
        return;
    }
    fs::remove_all(file, error);
    if (op == 'd')
        fs::create_directories(file / "within", error);
    if (op == 'p')
        (void)::mkfifo(file.c_str(), 0600);
    if (op == 'L')
        fs::create_symlink(bench.outside("secret"), file, error);
}

void applyLine(const Bench& bench, const std::string& line)
{
    std::istringstream words(line);
    char op = ' ';
    words >> op;
    if (op == 'j') {
        std::string place;
        std::string value;
        words >> place >> value;
        return setState(bench, place, value);
    }
    if (op == 'S') {
        (void)check(sealCheckpoint(bench.checkpoint()));
        return;
    }
    std::size_t index = 0;
    std::size_t number = 0;
    std::size_t other = 0;
    words >> index >> number >> other;
    std::error_code error;
    const bool isFile =
        fs::symlink_status(bench.file(index), error).type() == fs::file_type::regular;
    if (std::string_view("fxaePmM").find(op) != std::string_view::npos && isFile)
        changeFile(bench, op, index, number, other);
    else if (std::string_view("gsdplL").find(op) != std::string_view::npos)
        replaceFile(bench, op, index, other);
}

bool hasLink(const fs::path& folder)
{
    std::error_code error;
    for (const auto& entry : fs::recursive_directory_iterator(folder, error))
        if (entry.is_symlink(error))
            return true;
    return false;
}

} // namespace

void checkpointFolder(std::string_view bytes)
{
    static Bench bench;
    bench.restore();
    std::istringstream lines((std::string(bytes)));
    bool isSealed = false;
    for (std::string line; std::getline(lines, line);) {
        applyLine(bench, line);
        isSealed |= line.starts_with("S");
    }
    const bool isChanged = bench.isChanged();
    const bool leadsOut = hasLink(bench.checkpoint());

    auto loaded = bench.load();

    if (!check(loaded))
        require(loaded.status().message().find(bench.checkpoint().string()) != std::string::npos,
            "a refusal that names no file");
    require(isChanged || loaded.ok(), "refused as it was written");
    require(!isChanged || isSealed || !loaded.ok(), "taken although it is not as it was written");
    require(!leadsOut || !loaded.ok(), "a link was followed");
}

} // namespace mr::fuzz
