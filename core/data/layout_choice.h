// Which reading of a file's columns is meant: chosen where it is certain, else asked.
//
// A reading comes from the catalogue (layouts.h) or from the families of names (column_words.h). It
// is certain only if it is the only one and leaves no column out that has to be explained
// (explained_columns.h). The order of columns decides nothing.
//
// Threads  Pure.

#pragma once

#include "core/data/column_facts.h"

#include <millrace/library.h>

#include <map>
#include <string>
#include <vector>

namespace mr {

struct LayoutReading {
    std::string layout; // "Alpaca", "question and answer by name", ...
    std::map<std::string, std::string> mapping;
    std::string leftOut{}; // why it is not certain: a column with text that it leaves out; or empty
};

struct LayoutChoice {
    bool isCertain = false;              // `readings` has one element then
    std::vector<LayoutReading> readings; // the likely ones, the likeliest first; may be empty
    std::string layout{};                // known by this name, though it is refused or asked
    std::string why{};                   // it is refused or asked
    DataRefusal refusal = DataRefusal::None;
};

LayoutChoice chooseLayout(const std::vector<ColumnFacts>& facts);

// "prompt=a,response=b", as --map takes it; within quotes for a shell where that is needed.
std::string mapOption(const std::map<std::string, std::string>& mapping);

// The first texts of the columns that the reading takes, by role, each within quotes.
std::map<std::string, std::string> firstTextsOf(
    const std::map<std::string, std::string>& mapping, const std::vector<ColumnFacts>& facts);

// "\"How many?\" -> \"Four.\"": the row that the reading makes of the first texts of its columns.
std::string firstRowOf(
    const std::map<std::string, std::string>& mapping, const std::vector<ColumnFacts>& facts);

} // namespace mr
