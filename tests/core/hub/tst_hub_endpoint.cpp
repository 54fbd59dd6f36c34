#include "core/data/data_files.h"
#include "core/hub/hub_endpoint.h"
#include "support/test_room.h"

#include <QTest>

#include <map>

namespace mr::test::tst_hub_endpoint {

class TestHubEndpoint : public QObject
{
    Q_OBJECT

    static Environment of(std::map<std::string, std::string> values)
    {
        return [values = std::move(values)](const char* name) -> const char* {
            const auto found = values.find(name);
            return found == values.end() ? nullptr : found->second.c_str();
        };
    }

    Folder m_folder;

private Q_SLOTS:
    void theUsualHubIsAsked()
    {
        const HubEndpoint hub = hubEndpoint(of({{"HOME", m_folder.path()}})).value();
        QCOMPARE(hub.addressOf("/a"), std::string("https://huggingface.co/a"));
        QVERIFY(hub.token.empty() && !hub.isTokenUnsent);
    }

    void anotherHubIsNamed()
    {
        const HubEndpoint hub = hubEndpoint(
            of({{"HOME", m_folder.path()}, {"HF_ENDPOINT", "https://h.example:81/hf//"}}))
                                    .value();
        QCOMPARE(hub.addressOf("/a"), std::string("https://h.example:81/hf/a"));
        const auto wrong = hubEndpoint(of({{"HF_ENDPOINT", "h.example"}}));
        QVERIFY(contains(wrong.status().message(), "HF_ENDPOINT: the address \"h.example\""));
    }

    void tokensAreFoundInTheirOrder()
    {
        m_folder.write("token", "from-home\n");
        m_folder.write("other", " from-path ");
        std::map<std::string, std::string> values{{"HF_HOME", m_folder.path()}};
        QCOMPARE(hubEndpoint(of(values)).value().token, std::string("from-home"));
        values["HF_TOKEN_PATH"] = m_folder.path("other");
        QCOMPARE(hubEndpoint(of(values)).value().token, std::string("from-path"));
        values["HF_TOKEN"] = "from-variable";
        QCOMPARE(hubEndpoint(of(values)).value().token, std::string("from-variable"));
    }

    void wrongTokensAreNotShown()
    {
        const auto two = hubEndpoint(of({{"HF_TOKEN", "hf_secret\r\nX: y"}}));
        QVERIFY(contains(two.status().message(), "HF_TOKEN holds no token"));
        QVERIFY(two.status().message().find("secret") == std::string::npos);
        const auto gone = hubEndpoint(of({{"HF_TOKEN_PATH", "/nowhere/token"}}));
        QVERIFY(contains(gone.status().message(), "/nowhere/token, which is not there"));
    }

    void tokensDoNotGoOverOpenWays()
    {
        const auto at = [](const char* address) {
            return hubEndpoint(of({{"HF_TOKEN", "t"}, {"HF_ENDPOINT", address}})).value();
        };
        QVERIFY(at("http://h.example").token.empty() && at("http://h.example").isTokenUnsent);
        QVERIFY(at("https://h.example").token == "t" && at("http://127.0.0.1:1").token == "t");
    }

    void theCacheIsThatOfOtherPrograms()
    {
        std::map<std::string, std::string> values{{"HOME", "/h"}};
        QCOMPARE(hubCache(of(values)).value().string(), std::string("/h/.cache/huggingface/hub"));
        values["XDG_CACHE_HOME"] = "/x";
        QCOMPARE(hubCache(of(values)).value().string(), std::string("/x/huggingface/hub"));
        values["HF_HOME"] = "/hf";
        QCOMPARE(hubCache(of(values)).value().string(), std::string("/hf/hub"));
        values["HUGGINGFACE_HUB_CACHE"] = "/old";
        QCOMPARE(hubCache(of(values)).value().string(), std::string("/old"));
        values["HF_HUB_CACHE"] = "/c";
        QCOMPARE(hubCache(of(values)).value().string(), std::string("/c"));
        QVERIFY(contains(hubCache(of({})).status().message(), "name one in HF_HOME"));
    }

    void offlineMeansOffline()
    {
        const auto hub = hubEndpoint(of({{"HOME", "/h"}, {"HF_HUB_OFFLINE", "1"}}));
        QVERIFY(contains(hub.status().message(), "HF_HUB_OFFLINE is set"));
    }
};

MR_TEST(TestHubEndpoint)

} // namespace mr::test::tst_hub_endpoint

#include "tst_hub_endpoint.moc"
