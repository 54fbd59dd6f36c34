// Model folders and GGUF files below a folder: LM Studio's, and those that the user names.

#include "core/found/store_rig.h"
#include "support/test_room.h"

#include <QtTest>

#include <algorithm>

namespace mr::test::tst_folder_walk {

namespace {

std::vector<std::string> namesOf(const LocalModels& found)
{
    std::vector<std::string> names;
    for (const LocalModel& model : found.models)
        names.push_back(model.name);
    std::sort(names.begin(), names.end());
    return names;
}

using Names = std::vector<std::string>;

} // namespace

class TestFolderWalk : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void filesOfLmStudioHaveThePublishersName();
    void readersOfPicturesAreNoModels();
    void partsOfAFileAreOneModel();
    void aMissingPartIsNamed();
    void anAdapterNamesItsModel();
    void foldersAreFoundToADepthOfFour();
    void aFolderThatIsAModelHasItsOwnName();
    void aConfigWithoutWeightsIsNoModel();
    void linksThatGoRoundEnd();
    void hiddenFoldersAreLeftOut();
    void aStoreBelowAFolderIsReadAsOne();
    void aFileThatIsNoGgufIsAnEntry();
    void theLicenceOfAFileComesBeforeTheFolders();
};

void TestFolderWalk::filesOfLmStudioHaveThePublishersName()
{
    const StoreRig rig;
    rig.put("lmstudio/mill/Tiny-GGUF/tiny-q8.gguf", smallGguf());
    rig.put("lmstudio/mill/Two-GGUF/a.gguf", smallGguf());
    rig.put("lmstudio/mill/Two-GGUF/b.gguf", smallGguf());
    rig.putModel("lmstudio/mill/Whole");

    const LocalModels found = rig.look();

    QCOMPARE(namesOf(found),
        (Names{"mill/Tiny-GGUF", "mill/Two-GGUF/a.gguf", "mill/Two-GGUF/b.gguf", "mill/Whole"}));
    QCOMPARE(named(found, "mill/Tiny-GGUF").store, ModelStore::LmStudio);
    QCOMPARE(named(found, "mill/Tiny-GGUF").use, ModelUse::Adapter);
    QVERIFY(named(found, "mill/Tiny-GGUF").path.ends_with("tiny-q8.gguf"));
    QCOMPARE(named(found, "mill/Whole").use, ModelUse::Train);
}

void TestFolderWalk::readersOfPicturesAreNoModels()
{
    const StoreRig rig;
    rig.put("lmstudio/mill/Tiny/tiny.gguf", smallGguf());
    rig.put("lmstudio/mill/Tiny/mmproj-tiny-f16.gguf", "GGUF");
    rig.put("lmstudio/mill/Other/tiny.mmproj.gguf", "GGUF");

    QCOMPARE(namesOf(rig.look()), (Names{"mill/Tiny"}));
}

void TestFolderWalk::partsOfAFileAreOneModel()
{
    const StoreRig rig;
    for (const char* part : {"1", "2"})
        rig.put("lmstudio/mill/Big/big-q4-0000" + std::string(part) + "-of-00002.gguf", "GGUF");
    rig.put("lmstudio/mill/Big/one-00001-of-00001.gguf", smallGguf());

    const LocalModels found = rig.look();
    const LocalModel model = named(found, "mill/Big/big-q4.gguf");

    QCOMPARE(found.models.size(), std::size_t{2});
    QCOMPARE(model.use, ModelUse::Nothing);
    QCOMPARE(model.bytes, std::uint64_t{8});
    QVERIFY(contains(model.reason, "split into 2 files"));
    QVERIFY(contains(model.reason, "llama-gguf-split --merge"));
    QCOMPARE(named(found, "mill/Big/one-00001-of-00001.gguf").use, ModelUse::Adapter);
}

void TestFolderWalk::anAdapterNamesItsModel()
{
    const fs::path lora = fs::path(sharedData()) / "adapters" / "tiny_lora";
    if (!fs::exists(lora))
        QSKIP("the shared test data is not there");
    const StoreRig rig;
    for (const char* name : {"adapter_config.json", "adapter_model.safetensors"}) {
        rig.put("lmstudio/mill/Tuned/" + std::string(name), readFile((lora / name).string()));
        rig.put("lmstudio/mill/Broken/" + std::string(name), "{");
    }

    const LocalModels found = rig.look();
    const LocalModel tuned = named(found, "mill/Tuned");

    QVERIFY(tuned.isAdapter && tuned.use == ModelUse::Nothing);
    QVERIFY2(tuned.reason.starts_with("An adapter"), tuned.reason.c_str());
    QVERIFY(tuned.bytes > 1000);
    QVERIFY(!named(found, "mill/Broken").isAdapter);
    QVERIFY(contains(named(found, "mill/Broken").reason, "adapter_config.json"));
}

void TestFolderWalk::aMissingPartIsNamed()
{
    const StoreRig rig;
    for (const char* part : {"1", "3"})
        rig.put("lmstudio/mill/Big/big-0000" + std::string(part) + "-of-00003.gguf", "GGUF");

    QCOMPARE(
        named(rig.look(), "mill/Big").reason, std::string("incomplete: part 2 of 3 is missing"));
}

void TestFolderWalk::foldersAreFoundToADepthOfFour()
{
    const StoreRig rig;
    rig.putModel("folders/a/b/c/near");
    rig.putModel("folders/a/b/c/d/far");

    QCOMPARE(namesOf(rig.look()), (Names{"a/b/c/near"}));
}

void TestFolderWalk::aFolderThatIsAModelHasItsOwnName()
{
    const StoreRig rig;
    rig.putModel("mine/tiny");

    for (const char* end : {"", "/"}) {
        const LocalModels found =
            findLocalModels({{}, {}, {}, {rig.path("mine/tiny").string() + end}});
        QCOMPARE(namesOf(found), (Names{"tiny"}));
        QCOMPARE(found.models[0].store, ModelStore::Folder);
        QCOMPARE(found.models[0].use, ModelUse::Train);
    }
}

void TestFolderWalk::aConfigWithoutWeightsIsNoModel()
{
    const StoreRig rig;
    rig.put("folders/program/config.json", "{}");

    QVERIFY(rig.look().models.empty());
}

void TestFolderWalk::linksThatGoRoundEnd()
{
    const StoreRig rig;
    rig.putModel("folders/tiny");
    fs::create_directory_symlink("..", rig.path("folders/tiny/up"));
    fs::create_directory_symlink("loop", rig.path("folders/loop"));
    fs::create_directory_symlink("tiny", rig.path("folders/again"));

    QCOMPARE(rig.look().models.size(), std::size_t{1});
}

void TestFolderWalk::hiddenFoldersAreLeftOut()
{
    const StoreRig rig;
    rig.putModel("folders/.trash/tiny");

    QVERIFY(rig.look().models.empty());
}

void TestFolderWalk::aStoreBelowAFolderIsReadAsOne()
{
    const StoreRig rig;
    const std::string revision(40, 'a');
    rig.putSnapshot("folders/cache/hub/models--Mill--Tiny", revision);
    rig.put("folders/cache/hub/models--Mill--Tiny/refs/main", revision);
    rig.putManifest("registry.ollama.ai/library/tiny/1b", {rig.layer("model", smallGguf())});
    fs::rename(rig.path("ollama"), rig.path("folders/ollama"));

    const LocalModels found = rig.look();

    QCOMPARE(namesOf(found), (Names{"Mill/Tiny", "tiny:1b"}));
    QCOMPARE(named(found, "tiny:1b").store, ModelStore::Folder);
}

void TestFolderWalk::aFileThatIsNoGgufIsAnEntry()
{
    const StoreRig rig;
    rig.put("folders/page.gguf", "<!doctype html>");
    rig.put("folders/tiny.gguf", smallGguf());
    rig.put("folders/cut.gguf", smallGguf().substr(0, smallGguf().size() / 2));
    fs::create_symlink("nowhere", rig.path("folders/gone.gguf"));

    const LocalModels found = rig.look();

    QVERIFY(contains(named(found, "page.gguf").reason, "page.gguf: byte 0: a web page"));
    QCOMPARE(named(found, "cut.gguf").use, ModelUse::Nothing);
    QVERIFY(contains(named(found, "gone.gguf").reason, "incomplete: gone.gguf is a link"));
    QCOMPARE(named(found, "tiny.gguf").use, ModelUse::Adapter);
}

void TestFolderWalk::theLicenceOfAFileComesBeforeTheFolders()
{
    const StoreRig rig;
    rig.put("folders/a/x.gguf", ggufOf({{"general.architecture", GgufValue::string("llama")},
                                    {"general.license", GgufValue::string("mit")}}));
    rig.put("folders/a/LICENSE", "Another Licence\n");
    rig.put("folders/b/x.gguf", ggufOf({{"general.architecture", GgufValue::string("llama")}}));
    rig.put("folders/b/LICENSE", "\n  Another Licence\n");

    const LocalModels found = rig.look();

    QCOMPARE(named(found, "a").licence, std::string("mit"));
    QCOMPARE(named(found, "b").licence, std::string("Another Licence"));
}

MR_TEST(TestFolderWalk)

} // namespace mr::test::tst_folder_walk

#include "tst_folder_walk.moc"
