#include "app/cuda_plugin.h"
#include "support/test_room.h"

#include <QFile>
#include <QProcess>
#include <QTemporaryDir>
#include <QTest>

#include <cstring>

namespace mr::test::tst_cuda_plugin {

namespace fs = std::filesystem;

class TestCudaPlugin : public QObject
{
    Q_OBJECT

    static fs::path fake(const char* name)
    {
        return fs::path(MR_FAKE_PLUGINS) / (std::string("libfake_plugin_") + name + ".so");
    }

    static std::string refusal(const fs::path& file)
    {
        const auto plugin = mr::app::loadCudaPlugin(file);
        if (plugin.ok())
            return "it was loaded";
        if (plugin.status().kind() != mr::ErrorKind::InvalidArgument)
            return "the wrong kind: " + plugin.status().message();
        return plugin.status().message();
    }

    static bool has(const std::string& text, const char* words)
    {
        if (text.find(words) != std::string::npos)
            return true;
        qWarning("\"%s\" is not in: %s", words, text.c_str());
        return false;
    }

private Q_SLOTS:
    void aPluginOfThisBuildIsUsed()
    {
        auto plugin = mr::app::loadCudaPlugin(fake("good"));
        QVERIFY2(plugin.ok(), plugin.status().message().c_str());

        auto facts = plugin.value()->inspect();
        auto device = plugin.value()->makeDevice({1 << 20});

        QVERIFY(facts.ok() && device.ok());
        QCOMPARE(facts.value().name, std::string("Invented GPU"));
        QCOMPARE(device.value()->info().memoryBytes, std::size_t{1} << 20);
        QCOMPARE(plugin.value()->baselineBytes(*device.value()), std::uint64_t{7});
        auto buffer = device.value()->allocate(100, mr::MemoryKind::Device, "test");
        QVERIFY(buffer.ok());
        const auto tooMuch = device.value()->allocate(1 << 21, mr::MemoryKind::Device, "test");
        QVERIFY(tooMuch.status().kind() == mr::ErrorKind::OutOfMemory);
    }

    void noPluginIsSaidInASentence()
    {
        const std::string said = refusal({});
        QVERIFY(has(said, "device cuda: this build has no CUDA device"));
        QVERIFY(has(said, "built without the CUDA toolkit"));
        QVERIFY(has(said, "choose device cpu"));
    }

    void aFileThatTheEnvironmentNamesAndIsNotThereIsNamed()
    {
        QVERIFY(has(refusal("/nowhere/plugin.so"), "/nowhere/plugin.so does not exist"));
        QVERIFY(has(refusal("/nowhere/plugin.so"), "MILLRACE_CUDA_PLUGIN"));
    }

    void theEnvironmentOverridesWhereItIsLookedFor()
    {
        qputenv("MILLRACE_CUDA_PLUGIN", "/some/where.so");
        QCOMPARE(mr::app::findCudaPlugin().string(), std::string("/some/where.so"));
        qunsetenv("MILLRACE_CUDA_PLUGIN");
        QVERIFY(mr::app::findCudaPlugin() != fs::path("/some/where.so"));
    }

    void aPluginOfAnotherBuildIsRefusedWithBothNames()
    {
        const std::string said = refusal(fake("other_build"));
        QVERIFY(has(said, "belongs to another build"));
        QVERIFY(has(said, "millrace 0.0.1, compiler none"));
        QVERIFY(has(said, "this program is \"millrace "));
    }

    void aLibraryWithoutTheEntryIsRefused()
    {
        QVERIFY(has(refusal(fake("no_entry")), "has no function millraceCudaPlugin"));
    }

    // The loader's words name the missing library; the advice depends on cuBLAS alone.
    void aMissingLibraryIsNamedByTheLoader()
    {
        const std::string said = refusal(fake("needs_absent"));
        QVERIFY(has(said, "could not be loaded"));
        QVERIFY(has(said, "libfake_absent.so"));
        QVERIFY(has(said, "choose device cpu"));
    }

    void aTextFileIsNoSharedLibrary()
    {
        const QTemporaryDir folder;
        const QString path = folder.filePath(QStringLiteral("plugin.so"));
        QFile file(path);
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write("not a library\n");
        file.close();
        QVERIFY(has(refusal(path.toStdString()), "is not a shared library"));
    }

    // With a GPU the plugin finds it, without one its error names the missing part. Neither case
    // crashes, and a process that failed once may ask again.
    void theRealPluginAnswersOnEveryMachine()
    {
#ifdef MR_REAL_PLUGIN
        auto plugin = mr::app::loadCudaPlugin(MR_REAL_PLUGIN);
        if (!plugin.ok()) { // a machine that builds it without being able to run it
            QVERIFY(has(plugin.status().message(), "could not be loaded"));
            return;
        }
        const auto facts = plugin.value()->inspect();
        const auto again = plugin.value()->inspect();
        QCOMPARE(again.ok(), facts.ok());
        if (facts.ok())
            return;
        qInfo("%s", facts.status().message().c_str());
        QCOMPARE(again.status().message(), facts.status().message());
        QVERIFY(has(facts.status().message(), "device cuda: "));
        QVERIFY(has(facts.status().message(), "choose device cpu"));
        const auto device = plugin.value()->makeDevice({1 << 20});
        QCOMPARE(device.status().message(), facts.status().message());
        if (!fs::exists("/proc/driver/nvidia"))
            QVERIFY(has(facts.status().message(), "no NVIDIA driver"));
#else
        qInfo("the plugin was not built here: no CUDA toolkit, or a sanitizer build");
#endif
    }

    void whatTheDriverSaysIsPutInASentence_data()
    {
        QTest::addColumn<QString>("driver");
        QTest::addColumn<int>("exitCode");
        QTest::addColumn<QString>("said");
        QTest::newRow("too old") << QStringLiteral("too_old") << 2
                                 << QStringLiteral("is too old: it knows CUDA 11.4");
        QTest::newRow("no card") << QStringLiteral("no_card") << 2
                                 << QStringLiteral("the NVIDIA driver sees no GPU");
        QTest::newRow("half updated")
            << QStringLiteral("mismatch") << 4
            << QStringLiteral("does not answer: cudaErrorSystemDriverMismatch");
    }

    void whatTheDriverSaysIsPutInASentence()
    {
#ifdef MR_REAL_PLUGIN
        QFETCH(QString, driver);
        QFETCH(int, exitCode);
        QFETCH(QString, said);
        QProcess process;
        QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
        environment.insert(QStringLiteral("LD_LIBRARY_PATH"),
            QStringLiteral(MR_FAKE_DRIVERS "/") + driver + QLatin1Char(':') +
                environment.value(QStringLiteral("LD_LIBRARY_PATH")));
        process.setProcessEnvironment(environment);

        process.start(QStringLiteral(MR_MILLRACE),
            {QStringLiteral("selftest"), QStringLiteral("--device"), QStringLiteral("cuda")});
        QVERIFY(process.waitForFinished(60'000));

        const QByteArray errors = process.readAllStandardError();
        QVERIFY2(errors.contains(said.toUtf8()), errors.constData());
        QCOMPARE(process.exitStatus(), QProcess::NormalExit);
        QCOMPARE(process.exitCode(), exitCode);
#endif
    }
};

MR_TEST_WITH_APP(TestCudaPlugin)

} // namespace mr::test::tst_cuda_plugin

#include "tst_cuda_plugin.moc"
