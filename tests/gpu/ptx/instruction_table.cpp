#include "gpu/ptx/instruction_table.h"

#include <fmt/core.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

namespace mr::ptx {
namespace {

constexpr std::string_view kTableHead =
    "# Instructions\n\n"
    "Each PTX instruction that the kernels of `gpu/` are compiled to, the programs and the "
    "number of kernels that use it, the test class of `tst_ptx` that runs it alone, and the first "
    "conformance case that executes it. `gpu/ptx` compares; to write the table again, run "
    "`MR_UPDATE_INSTRUCTIONS=1 ctest -j1 -R gpu/ptx/kernels`.\n\n"
    "| instruction | sm_ | kernels | unit test | on | conformance case "
    "|\n|---|---|---|---|---|---|\n";

std::string path()
{
    const char* const source = std::getenv("MILLRACE_SOURCE");
    return std::string(source ? source : ".") + "/tests/gpu/ptx/instructions.md";
}

std::string trimmed(const std::string& text)
{
    const std::size_t first = text.find_first_not_of(' ');
    return first == std::string::npos ? std::string()
                                      : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

} // namespace

InstructionTable readInstructionTable()
{
    InstructionTable table;
    std::ifstream file(path());
    for (std::string line; std::getline(file, line);) {
        std::array<std::string, 7> cells; // the first is before the first bar
        std::istringstream parts(line);
        for (std::string& cell : cells)
            std::getline(parts, cell, '|');
        const std::size_t count = std::strtoul(cells[3].c_str(), nullptr, 10);
        if (count != 0)
            table[trimmed(cells[1])] = {
                trimmed(cells[2]), count, trimmed(cells[4]), trimmed(cells[5]), trimmed(cells[6])};
    }
    return table;
}

bool writeInstructionTable(const InstructionTable& table)
{
    std::ofstream file(path());
    file << kTableHead;
    for (const auto& [name, row] : table)
        file << fmt::format("| {} | {} | {} | {} | {} | {} |\n", name, row.targets, row.kernels,
            row.unit, row.target, row.conformance);
    return file.flush().good();
}

bool updatesInstructionTable()
{
    return std::getenv("MR_UPDATE_INSTRUCTIONS") != nullptr;
}

std::string withoutUnitCase(const std::string& unit, const std::set<std::string>& run)
{
    std::string missing;
    for (const auto& [name, row] : readInstructionTable())
        if (row.unit == unit && !run.contains(name))
            missing += name + "\n";
    return missing;
}

} // namespace mr::ptx
