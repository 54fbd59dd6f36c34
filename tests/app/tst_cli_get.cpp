// `millrace get` as a process, against a hub on the loopback.

#include "core/data/data_files.h"
#include "support/hub_server.h"
#include "support/test_room.h"

#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QTest>

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

namespace mr::test::tst_cli_get {

namespace fs = std::filesystem;

class TestCliGet : public QObject
{
    Q_OBJECT

    Folder m_folder;
    int m_caches = 0;

    struct Ended {
        int code = -1;
        QString out;
        QString errors;
    };

    QString newCache()
    {
        return QString::fromStdString(m_folder.path("hub" + std::to_string(++m_caches)));
    }

    static void prepare(QProcess& process, const std::string& address, const QString& cache)
    {
        QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
        environment.insert(QStringLiteral("HF_ENDPOINT"), QString::fromStdString(address));
        environment.insert(QStringLiteral("HF_HUB_CACHE"), cache);
        environment.insert(QStringLiteral("HF_TOKEN"), QStringLiteral("hf_secret"));
        environment.remove(QStringLiteral("HF_HUB_OFFLINE"));
        environment.remove(QStringLiteral("MILLRACE_NET_PLUGIN"));
        process.setProcessEnvironment(environment);
        process.setStandardInputFile(QProcess::nullDevice());
    }

    static Ended finish(QProcess& process)
    {
        if (!process.waitForFinished(60'000))
            qFatal("millrace did not end within a minute");
        return {process.exitStatus() == QProcess::NormalExit ? process.exitCode() : -1,
            QString::fromUtf8(process.readAllStandardOutput()),
            QString::fromUtf8(process.readAllStandardError())};
    }

    static Ended get(const std::string& address, const QString& cache, const QStringList& more = {})
    {
        QProcess process;
        prepare(process, address, cache);
        process.start(QStringLiteral(MR_MILLRACE),
            QStringList{QStringLiteral("get"), QStringLiteral("org/tiny")} + more);
        Ended ended = finish(process);
        if ((ended.out + ended.errors).contains(QStringLiteral("hf_secret")))
            qFatal("the token was printed");
        return ended;
    }

    static QStringList words(const char* text)
    {
        return QString::fromLatin1(text).split(QLatin1Char(' '));
    }

    static QString snapshot(const QString& cache)
    {
        return cache + QStringLiteral("/models--org--tiny/snapshots/") +
               QString::fromStdString(kFakeCommit);
    }

private Q_SLOTS:
    void withoutConsentOnlyTheListIsAskedFor()
    {
        HubServer hub;
        const QString cache = newCache();
        const Ended ended = get(hub.address(), cache);

        QCOMPARE(ended.code, 2);
        QVERIFY(ended.errors.contains(QStringLiteral("add --yes to fetch these files")));
        QVERIFY(ended.errors.contains(
            QStringLiteral("for the list of files of org/tiny, with your token")));
        QVERIFY(ended.out.contains(QStringLiteral("  model.safetensors (293.0 KiB)")));
        QVERIFY(ended.out.contains(QStringLiteral("left out, a script or program: train.py")));
        QVERIFY(ended.out.contains(QStringLiteral("3 files, 297.9 KiB; to be fetched: 297.9 KiB")));
        QVERIFY(ended.out.contains(QStringLiteral("they go to ") + snapshot(cache)));
        QVERIFY(ended.out.contains(QStringLiteral("requests: one for each file to 127.0.0.1:")));
        QCOMPARE(hub.requests().size(), std::size_t{1});
        QVERIFY(!fs::exists(cache.toStdString()));
    }

    void withConsentAllIsFetched()
    {
        HubServer hub;
        const QString cache = newCache();
        const Ended ended = get(hub.address(), cache, words("--yes"));

        QVERIFY2(ended.code == 0, qPrintable(ended.errors));
        QVERIFY(ended.out.contains(QStringLiteral("org/tiny is in ") + snapshot(cache)));
        QCOMPARE(readFile((snapshot(cache) + QStringLiteral("/model.safetensors")).toStdString()),
            FakeRepo().files[1].content);
        const Ended again = get(hub.address(), cache, words("--yes"));
        QVERIFY(again.code == 0 && again.out.contains(QStringLiteral("(9 B, there already)")));
    }

    void eventsAreJson()
    {
        HubServer hub;
        const Ended ended = get(hub.address(), newCache(), words("--yes --json"));

        QVERIFY2(ended.code == 0 && ended.errors.isEmpty(), qPrintable(ended.errors));
        QStringList events;
        for (const QString& line : ended.out.split(QLatin1Char('\n'), Qt::SkipEmptyParts)) {
            const QJsonDocument document = QJsonDocument::fromJson(line.toUtf8());
            QVERIFY2(document.isObject(), qPrintable(line));
            events << document.object()[QLatin1String("event")].toString();
        }
        QVERIFY(events.contains(QStringLiteral("plan")));
        QVERIFY(events.contains(QStringLiteral("progress")));
        QCOMPARE(events.last(), QStringLiteral("end"));
        const Ended asked = get(hub.address(), newCache(), words("--json"));
        QVERIFY(asked.code == 2 && asked.out.contains(QStringLiteral("\"event\":\"error\"")));
    }

    void patternsAndAFolder()
    {
        HubServer hub;
        const QString into = QString::fromStdString(m_folder.path("plain"));
        const Ended ended = get(hub.address(), newCache(),
            words("--yes --include *.json --include *.safetensors --exclude tok* --into") << into);

        QVERIFY2(ended.code == 0, qPrintable(ended.errors));
        QVERIFY(QFile::exists(into + QStringLiteral("/config.json")));
        QVERIFY(QFile::exists(into + QStringLiteral("/model.safetensors")));
        QVERIFY(!QFile::exists(into + QStringLiteral("/tokenizer.json")));
        QCOMPARE(
            QDir(into).entryList(QDir::AllEntries | QDir::Hidden | QDir::NoDotAndDotDot).size(), 2);
    }

    void refusalsAreSentences()
    {
        HubServer hub({}, [](const ServedRequest&) -> std::optional<FakeAnswer> {
            return FakeAnswer{404, {{"x-error-code", "RepoNotFound"}}, ""};
        });
        const Ended ended = get(hub.address(), newCache(), words("--yes"));
        QCOMPARE(ended.code, 2);
        QVERIFY(
            ended.errors.contains(QStringLiteral("has no model org/tiny (404); check the name")));
    }

    void interruptKeepsWhatIsThere()
    {
        const QString cache = newCache();
        const FakeFile model = FakeRepo().files[1];
        const fs::path incomplete =
            (cache + QStringLiteral("/models--org--tiny/blobs/")).toStdString() +
            hubFileOf(model).hash + ".incomplete";
        {
            HubServer hub({}, [&](const ServedRequest& request) -> std::optional<FakeAnswer> {
                if (!request.target.ends_with("model.safetensors"))
                    return std::nullopt;
                return FakeAnswer{200, {{"content-length", "300000"}},
                    model.content.substr(0, 200'000), HttpFault::Stalled};
            });
            QProcess process;
            prepare(process, hub.address(), cache);
            process.start(QStringLiteral(MR_MILLRACE), words("get org/tiny --yes"));
            std::error_code error;
            QTRY_VERIFY_WITH_TIMEOUT(
                fs::exists(incomplete) && fs::file_size(incomplete, error) == 200'000, 30'000);
            ::kill(static_cast<pid_t>(process.processId()), SIGINT);
            const Ended ended = finish(process);
            QCOMPARE(ended.code, 130);
            QVERIFY(ended.errors.contains(QStringLiteral("the same command goes on from there")));
        }
        QCOMPARE(fs::file_size(incomplete), std::uintmax_t{200'000});
        HubServer healthy;
        const Ended second = get(healthy.address(), cache, words("--yes"));
        QVERIFY2(second.code == 0, qPrintable(second.errors));
        QVERIFY(second.out.contains(QStringLiteral("195.3 KiB there already")));
    }

    void aTerminalIsAsked_data()
    {
        QTest::addColumn<QByteArray>("answer");
        QTest::addColumn<int>("code");
        QTest::newRow("yes") << QByteArray("y\n") << 0;
        QTest::newRow("no") << QByteArray("n\n") << 130;
        QTest::newRow("nothing") << QByteArray("\n") << 130;
    }

    void aTerminalIsAsked()
    {
        QFETCH(QByteArray, answer);
        QFETCH(int, code);
        const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
        QVERIFY(terminal >= 0 && ::grantpt(terminal) == 0 && ::unlockpt(terminal) == 0);
        HubServer hub;
        QProcess process;
        prepare(process, hub.address(), newCache());
        process.setStandardInputFile(QString::fromLocal8Bit(::ptsname(terminal)));
        process.start(QStringLiteral(MR_MILLRACE), words("get org/tiny"));
        QVERIFY(process.waitForStarted());
        QCOMPARE(::write(terminal, answer.constData(), static_cast<std::size_t>(answer.size())),
            static_cast<ssize_t>(answer.size()));

        const Ended ended = finish(process);

        QVERIFY(ended.out.contains(QStringLiteral("? [y/N] ")));
        QCOMPARE(ended.code, code);
        QCOMPARE(hub.requests().size(), code == 0 ? std::size_t{4} : std::size_t{1});
        ::close(terminal);
    }

    // The program itself holds no code of Qt: only the plugin does.
    void theProgramHasNoNetwork()
    {
        const std::string program = readFile(MR_MILLRACE);
        QVERIFY(program.size() > 100'000);
        QVERIFY(program.find("libQt6") == std::string::npos);
        QProcess process;
        prepare(process, "http://127.0.0.1:1", newCache());
        QProcessEnvironment environment = process.processEnvironment();
        environment.insert(QStringLiteral("MILLRACE_NET_PLUGIN"), QStringLiteral("/nowhere.so"));
        process.setProcessEnvironment(environment);
        process.start(QStringLiteral(MR_MILLRACE), words("get org/tiny"));
        const Ended ended = finish(process);
        QCOMPARE(ended.code, 2);
        QVERIFY(ended.errors.contains(QStringLiteral("/nowhere.so does not exist")));
    }
};

MR_TEST_WITH_APP(TestCliGet)

} // namespace mr::test::tst_cli_get

#include "tst_cli_get.moc"
