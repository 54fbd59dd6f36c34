// Every file of the shared folder `malformed` has a verdict, and every refusal names the error.

#include "core/api/json_text.h"
#include "core/data/data_files.h"
#include "core/data/documents.h"
#include "core/model/safetensors.h"
#include "core/model/weights.h"
#include "core/tokenizer/tokenizer.h"
#include "support/test_room.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace mr::test::tst_malformed {

namespace fs = std::filesystem;

namespace {

// Error names of the published cases, and the words our message must contain.
const std::map<std::string, std::string> kSafetensorWords = {
    {"error:MetadataIncompleteBuffer", "bytes after its last tensor that belong to nothing"},
    {"error:HeaderTooLarge", "its header would have"},
    {"error:HeaderTooSmall", "empty"},
    {"error:InvalidHeaderDeserialization", "not a safetensors file: it has only"},
    {"error:ValidationOverflow", "overflow"},
    {"error:InvalidOffset", "(overlap)"},
};

constexpr const char* kLfsWords = "git-lfs pointer";
constexpr const char* kLfsWayOut = "git lfs pull";

std::vector<std::string> namesIn(const std::string& folder)
{
    std::vector<std::string> names;
    std::error_code error;
    for (const auto& entry : fs::recursive_directory_iterator(folder, error))
        if (entry.is_regular_file())
            names.push_back(entry.path().lexically_relative(folder).string());
    std::sort(names.begin(), names.end());
    return names;
}

// Reads all rows of a dataset; a JSON list has a row for each element.
Status readRows(const std::string& path, std::vector<std::string>* texts = nullptr,
    std::map<std::string, std::string> columns = {})
{
    DataSource source;
    source.path = path;
    source.columns = std::move(columns);
    DatasetShape shape;
    MR_TRY(findShape(source, shape));
    return readDocuments(source, shape, {}, [&](const Document& document) {
        if (texts != nullptr) {
            texts->push_back(document.prompt);
            texts->push_back(document.response);
        }
        return Status();
    });
}

bool refusedBy(const Status& status, const std::string& name)
{
    return !status.ok() && contains(status.message(), name);
}

ModelConfig smallConfig()
{
    return parseModelConfig(R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
        "hidden_size": 4, "intermediate_size": 4, "num_hidden_layers": 1, "num_attention_heads": 1,
        "num_key_value_heads": 1, "vocab_size": 3, "max_position_embeddings": 8,
        "rms_norm_eps": 1e-5})",
        "config.json")
        .value();
}

} // namespace

class TestMalformed : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void everyFileIsKnown();
    void jsonCasesAreNoModelFiles();
    void jsonCasesAsLines();
    void safetensorsSayWhatIsWrong();
    void pointersNameTheWayOut();
    void naughtyStringsAreTrainedAsTheyAre();
    void naughtyTextIsText();

private:
    Folder m_folder;
};

// A folder that comes later must be given a test here.
void TestMalformed::everyFileIsKnown()
{
    const std::string data = sharedData();
    if (data.empty())
        return;
    const auto cases =
        nlohmann::json::parse(readFile(data + "/malformed/safetensors/expected.json"));
    std::set<std::string> known = {"safetensors/expected.json", "blns/blns.json", "blns/blns.txt",
        "blns/blns.base64.json", "lfs_pointers/consolidated.safetensors",
        "lfs_pointers/model-00001-of-00003.safetensors",
        "lfs_pointers/model.safetensors.index.json", "lfs_pointers/tokenizer.model"};
    for (const auto& item : cases.items())
        known.insert("safetensors/" + item.key());

    for (const std::string& name : namesIn(data + "/malformed"))
        QVERIFY2(known.contains(name) || name.starts_with("JSONTestSuite/"), name.c_str());
}

// Whatever JSON they are, none is a config, a tokenizer, an index or a list of rows.
void TestMalformed::jsonCasesAreNoModelFiles()
{
    const std::string data = sharedData();
    if (data.empty())
        return;
    const std::string suite = data + "/malformed/JSONTestSuite";
    const ModelConfig config = smallConfig();
    const ParamTable table = buildParamTable(config);
    for (const std::string& name : namesIn(suite)) {
        const std::string text = readFile(suite + "/" + name);

        const Status asConfig = parseModelConfig(text, "config.json").status();
        const Status asTokenizer = Tokenizer::open(m_folder.write("tokenizer.json", text)).status();
        m_folder.write("model.safetensors.index.json", text);
        const Status asIndex = findWeights(m_folder.path(), config, table).status();
        const Status asRows = readRows(m_folder.write("rows.json", text));

        QVERIFY2(refusedBy(asConfig, "config.json"), name.c_str());
        QVERIFY2(refusedBy(asTokenizer, "tokenizer.json"), name.c_str());
        QVERIFY2(refusedBy(asIndex, "model.safetensors.index.json"), name.c_str());
        QVERIFY2(asRows.ok() || contains(asRows.message(), "rows.json"), name.c_str());
        QVERIFY2(!name.starts_with("test_parsing/n_") || !asRows.ok(), name.c_str());
    }
}

// As the value of a column of one line; cases of several lines are lists' (record_reader).
void TestMalformed::jsonCasesAsLines()
{
    const std::string data = sharedData();
    if (data.empty())
        return;
    const std::string suite = data + "/malformed/JSONTestSuite/test_parsing";
    int refused = 0;
    for (const std::string& name : namesIn(suite)) {
        const std::string text = readFile(suite + "/" + name);
        if (text.find_first_of("\r\n") != std::string::npos)
            continue;
        const bool hasNul = text.find('\0') != std::string::npos;
        const std::string path =
            m_folder.write("rows.jsonl", R"({"prompt": "a", "response": "b", "extra": 1})"
                                         "\n{\"prompt\": \"a\", \"response\": \"b\", \"extra\": " +
                                             text + "}\n");

        const Status status =
            readRows(path, nullptr, {{"prompt", "prompt"}, {"response", "response"}});

        if (name.starts_with("y_"))
            QVERIFY2(status.ok(), (name + ": " + status.message()).c_str());
        if (name.starts_with("n_"))
            QVERIFY2(refusedBy(status,
                         hasNul ? "rows.jsonl: looks like a binary file" : "rows.jsonl, line 2"),
                name.c_str());
        refused += status.ok() ? 0 : 1;
    }
    QVERIFY(refused > 150);
}

void TestMalformed::safetensorsSayWhatIsWrong()
{
    const std::string data = sharedData();
    if (data.empty())
        return;
    const std::string folder = data + "/malformed/safetensors/";
    const auto cases = nlohmann::json::parse(readFile(folder + "expected.json"));
    for (const auto& item : cases.items()) {
        const std::string verdict = item.value().get<std::string>();

        const Status status = SafetensorsReader::open(folder + item.key()).status();

        QVERIFY2(status.ok() == (verdict == "ok"), item.key().c_str());
        if (status.ok())
            continue;
        QVERIFY2(kSafetensorWords.contains(verdict), verdict.c_str());
        QVERIFY2(contains(status.message(), kSafetensorWords.at(verdict)), item.key().c_str());
        QVERIFY2(contains(status.message(), item.key()), item.key().c_str());
    }
}

void TestMalformed::pointersNameTheWayOut()
{
    const std::string data = sharedData();
    if (data.empty())
        return;
    const std::string folder = data + "/malformed/lfs_pointers/";
    const Folder model;
    for (const char* name : {"model-00001-of-00003.safetensors", "model.safetensors.index.json"})
        model.write(name, readFile(folder + name));
    model.write("config.json", readFile(data + "/configs/mistral-7b-v0.1.json"));
    const ModelConfig config = smallConfig();

    const Status tokenizer = Tokenizer::open(folder + "tokenizer.model").status();
    const Status whole = SafetensorsReader::open(folder + "consolidated.safetensors").status();
    const Status shard =
        SafetensorsReader::open(folder + "model-00001-of-00003.safetensors").status();
    // The index itself was fetched; the shards it names were not.
    const Status index = findWeights(model.path(), config, buildParamTable(config)).status();
    const Status rows =
        readRows(m_folder.write("rows.jsonl", readFile(folder + "tokenizer.model")));

    for (const Status& status : {tokenizer, whole, shard, rows}) {
        QVERIFY(contains(status.message(), kLfsWords));
        QVERIFY(contains(status.message(), kLfsWayOut));
    }
    QVERIFY(refusedBy(index, "safetensors"));
}

void TestMalformed::naughtyStringsAreTrainedAsTheyAre()
{
    const std::string data = sharedData();
    if (data.empty())
        return;
    const auto strings = nlohmann::json::parse(readFile(data + "/malformed/blns/blns.json"));
    std::string rows;
    std::vector<std::string> wanted;
    for (const auto& text : strings) {
        nlohmann::json row;
        row["prompt"] = text;
        row["response"] = "[" + text.get<std::string>() + "]";
        rows += row.dump() + "\n";
        wanted.push_back(row["prompt"].get<std::string>());
        wanted.push_back(row["response"].get<std::string>());
    }
    std::vector<std::string> got;

    const Status status = readRows(m_folder.write("naughty.jsonl", rows), &got);

    QVERIFY2(status.ok(), status.message().c_str());
    QVERIFY(wanted.size() > 900);
    QVERIFY(got == wanted);
}

void TestMalformed::naughtyTextIsText()
{
    const std::string data = sharedData();
    if (data.empty())
        return;
    // A list of texts is rows of text.
    for (const char* name : {"blns.txt", "blns.base64.json", "blns.json"}) {
        const Status status = readRows(data + "/malformed/blns/" + name);
        QVERIFY2(status.ok(), status.message().c_str());
    }
}

MR_TEST(TestMalformed)

} // namespace mr::test::tst_malformed

#include "tst_malformed.moc"
