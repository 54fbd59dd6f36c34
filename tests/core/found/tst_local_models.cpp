// All stores together: places, what several share, and that looking changes nothing.

#include "core/found/licence.h"
#include "core/found/store_rig.h"
#include "support/test_room.h"

#include <QtTest>

#include <sys/stat.h>

namespace mr::test::tst_local_models {

namespace {

// Name, kind, bytes and time of change of everything below a folder.
std::string treeOf(const fs::path& folder)
{
    std::map<std::string, std::string> entries;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
        struct stat info {
        };
        if (::lstat(entry.path().c_str(), &info) != 0)
            qFatal("cannot look at a test file");
        const bool isFile = S_ISREG(info.st_mode);
        entries[entry.path().string()] = std::to_string(info.st_mode) + " " +
                                         std::to_string(info.st_mtim.tv_sec) + "." +
                                         std::to_string(info.st_mtim.tv_nsec) + " " +
                                         (isFile ? sha256(readFile(entry.path().string())) : "");
    }
    std::string text;
    for (const auto& [path, facts] : entries)
        text.append(path).append(" ").append(facts).append("\n");
    return text;
}

void putEveryStore(const StoreRig& rig)
{
    const std::string revision(40, 'a');
    rig.putSnapshot("hub/models--Mill--Tiny", revision);
    rig.put("hub/models--Mill--Tiny/refs/main", revision);
    rig.put("lmstudio/mill/Tiny/tiny.gguf", smallGguf());
    rig.putManifest("registry.ollama.ai/library/tiny/1b", {rig.layer("model", smallGguf())});
    rig.putModel("folders/tiny");
}

bool isThere(const std::vector<std::string>& places, const std::string& place)
{
    return std::find(places.begin(), places.end(), place) != places.end();
}

} // namespace

class TestLocalModels : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void init(); // no place is that of whoever runs the tests
    void everyStoreIsLookedAt();
    void lookingChangesNothing();
    void placesThatAreNotThereAreTold();
    void aPlaceThatIsLookedAtTwiceCountsOnce();
    void longListsEnd();
    void aNameStandsForAPath();
    void aNameThatIsNotOneModelIsRefused();
    void theEnvironmentNamesPlaces();
    void lmStudioNamesItsFolders();
    void withoutAHomeTheSystemsPlacesRemain();
    void licencesOfReadmes_data();
    void licencesOfReadmes();
};

void TestLocalModels::init()
{
    for (const char* name : {"HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME",
             "XDG_CACHE_HOME", "OLLAMA_MODELS"})
        qunsetenv(name);
}

void TestLocalModels::everyStoreIsLookedAt()
{
    const StoreRig rig;
    putEveryStore(rig);

    const LocalModels found = rig.look();

    QCOMPARE(found.models.size(), std::size_t{4});
    QCOMPARE(named(found, "Mill/Tiny").store, ModelStore::HuggingFace);
    QCOMPARE(named(found, "mill/Tiny").store, ModelStore::LmStudio);
    QCOMPARE(named(found, "tiny:1b").store, ModelStore::Ollama);
    QCOMPARE(named(found, "tiny").store, ModelStore::Folder);
    QCOMPARE(found.bytes, 2 * (fs::file_size(smallModel().path("model.safetensors")) +
                                  std::uint64_t{smallGguf().size()}));
    for (const LookedPlace& place : found.places)
        QVERIFY(place.exists && place.fault.empty());
}

void TestLocalModels::lookingChangesNothing()
{
    const StoreRig rig;
    putEveryStore(rig);
    qputenv("XDG_CACHE_HOME", QByteArray::fromStdString(rig.path("cache").string()));
    qputenv("HOME", QByteArray::fromStdString(rig.path().string()));
    const std::string before = treeOf(rig.path());

    const LocalModels found = rig.look();

    QCOMPARE(found.models.size(), std::size_t{4});
    QVERIFY(before.size() > 1000);
    QCOMPARE(treeOf(rig.path()), before);
}

void TestLocalModels::placesThatAreNotThereAreTold()
{
    const StoreRig rig;
    rig.put("folders", "a file");

    const LocalModels found = rig.look();

    QVERIFY(found.models.empty());
    QCOMPARE(found.places.size(), std::size_t{4});
    for (const LookedPlace& place : found.places)
        QVERIFY(!place.exists);
    QCOMPARE(found.places[0].path, rig.path("hub").string());
}

void TestLocalModels::aPlaceThatIsLookedAtTwiceCountsOnce()
{
    const StoreRig rig;
    putEveryStore(rig);
    fs::create_directory_symlink("folders", rig.path("linked"));
    ModelPlaces places = rig.places();
    places.folders.push_back(rig.path("linked").string());
    places.folders.push_back(rig.path("lmstudio").string());

    QCOMPARE(findLocalModels(places).models.size(), std::size_t{4});
}

void TestLocalModels::longListsEnd()
{
    const StoreRig rig;
    for (int i = 0; i < 2001; ++i)
        rig.put("folders/" + std::to_string(i) + ".gguf", "x");

    const LocalModels found = rig.look();

    QCOMPARE(found.models.size(), std::size_t{2000});
    QVERIFY(contains(found.places.back().fault, "more than 2000 models"));
}

void TestLocalModels::aNameStandsForAPath()
{
    const StoreRig rig;
    putEveryStore(rig);
    const auto pathOf = [&](const std::string& text) {
        return valueOf(localModelPath(text, rig.places()));
    };

    QCOMPARE(pathOf("Mill/Tiny"),
        rig.path("hub/models--Mill--Tiny/snapshots/" + std::string(40, 'a')).string());
    QCOMPARE(pathOf("mill/Tiny"), rig.path("lmstudio/mill/Tiny/tiny.gguf").string());
    QCOMPARE(pathOf("tiny:1b"), rig.path("ollama/blobs/sha256-" + sha256(smallGguf())).string());
    QCOMPARE(pathOf("tiny"), rig.path("folders/tiny").string());
    for (const std::string& text :
        {std::string(), std::string("./tiny"), std::string("nobody/none"), rig.path().string()})
        QCOMPARE(pathOf(text), text);
    const std::string before = fs::current_path().string();
    fs::current_path(rig.path("folders"));
    const std::string there = pathOf("tiny"); // a path comes before a name
    fs::current_path(before);
    QCOMPARE(there, std::string("tiny"));
}

void TestLocalModels::aNameThatIsNotOneModelIsRefused()
{
    const StoreRig rig;
    rig.putModel("folders/tiny");
    rig.putModel("more/tiny");
    rig.put("folders/bad.gguf", "x");
    ModelPlaces places = rig.places();
    places.folders.push_back(rig.path("more").string());

    const auto several = localModelPath("tiny", places);
    QVERIFY(!several.ok());
    for (const char* folder : {"folders/tiny", "more/tiny"})
        QVERIFY(contains(several.status().message(), rig.path(folder).string()));
    const auto bad = localModelPath("bad.gguf", places);
    QVERIFY(!bad.ok());
    QVERIFY(contains(bad.status().message(), "cannot be used: bad.gguf: byte 0"));
}

void TestLocalModels::theEnvironmentNamesPlaces()
{
    qputenv("HOME", "/home/miller");
    qputenv("HF_HUB_CACHE", "~/models");
    qputenv("HUGGINGFACE_HUB_CACHE", "");
    qputenv("HF_HOME", "/data/hf/");
    qputenv("XDG_CACHE_HOME", "/home/miller/.cache");
    qputenv("OLLAMA_MODELS", "/data/ollama");

    const ModelPlaces places = usualModelPlaces({"/mine"});

    QCOMPARE(places.huggingFace, (std::vector<std::string>{"/home/miller/models", "/data/hf/hub",
                                     "/home/miller/.cache/huggingface/hub"}));
    QCOMPARE(places.ollama.front(), std::string("/data/ollama"));
    QVERIFY(isThere(places.ollama, "/home/miller/.ollama/models"));
    QVERIFY(isThere(places.ollama, "/usr/share/ollama/.ollama/models"));
    QVERIFY(isThere(places.lmStudio, "/home/miller/.lmstudio/models"));
    QVERIFY(isThere(places.lmStudio, "/home/miller/.cache/lm-studio/models"));
    QCOMPARE(places.folders, (std::vector<std::string>{"/mine"}));
}

void TestLocalModels::lmStudioNamesItsFolders()
{
    const StoreRig rig;
    qputenv("HOME", QByteArray::fromStdString(rig.path().string()));
    rig.put(".lmstudio-home-pointer", rig.path("elsewhere").string() + "\n");
    rig.put("elsewhere/settings.json", R"({"downloadsFolder": "/data/lm", "other": 1})");
    rig.put(".lmstudio/settings.json", "nonsense");

    const auto places = usualModelPlaces().lmStudio;

    QCOMPARE(places[0], std::string("/data/lm"));
    QCOMPARE(places[1], rig.path("elsewhere/models").string());
    QCOMPARE(places[2], rig.path(".lmstudio/models").string());
}

void TestLocalModels::withoutAHomeTheSystemsPlacesRemain()
{
    const ModelPlaces places = usualModelPlaces();

    QVERIFY(places.huggingFace.empty());
    QVERIFY(places.lmStudio.empty());
    QCOMPARE(places.ollama.size(), std::size_t{2});
}

void TestLocalModels::licencesOfReadmes_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("licence");
    QTest::newRow("a word") << "---\nlicense: apache-2.0\n---\n"
                            << "apache-2.0";
    QTest::newRow("windows") << "---\r\nlicense: mit\r\nx: y\r\n---\r\n"
                             << "mit";
    QTest::newRow("in quotes") << "---\nlicense: \"mit\"\n---\n"
                               << "mit";
    QTest::newRow("a list") << "---\nx: y\nlicense:\n- cc-by-4.0\n- mit\n---\n"
                            << "cc-by-4.0";
    QTest::newRow("another") << "---\nlicense: other\nlicense_name: llama3.2\n---\n"
                             << "llama3.2";
    QTest::newRow("another without a name") << "---\nlicense: other\n---\n"
                                            << "other";
    QTest::newRow("a name alone") << "---\nlicense_name: mine\n---\n"
                                  << "mine";
    QTest::newRow("of another key") << "---\nbase:\n  license: mit\nmy_license: x\n---\n"
                                    << "";
    QTest::newRow("an empty key") << "---\nlicense:\ntags: x\n---\n"
                                  << "";
    QTest::newRow("in the text") << "# Tiny\nlicense: mit\n"
                                 << "";
    QTest::newRow("without an end") << "---\nlicense: mit\n"
                                    << "";
    QTest::newRow("behind the end") << "---\nx: y\n---\nlicense: mit\n---\n"
                                    << "";
    QTest::newRow("long") << "---\nlicense: " + QString(200, QLatin1Char('x')) + "\n---\n"
                          << QString(80, QLatin1Char('x'));
    QTest::newRow("nothing") << ""
                             << "";
}

void TestLocalModels::licencesOfReadmes()
{
    QFETCH(QString, text);
    QFETCH(QString, licence);

    QCOMPARE(licenceOfReadme(text.toStdString()), licence.toStdString());
}

MR_TEST(TestLocalModels)

} // namespace mr::test::tst_local_models

#include "tst_local_models.moc"
