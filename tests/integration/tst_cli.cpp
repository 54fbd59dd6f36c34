// `millrace` as scripts see it: exit codes, JSON lines, refusals that name the error.

#include "core/choose/scratch_rates.h"
#include "core/plan/policies.h"
#include "core/run/changed_model.h"
#include "integration/cli_rig.h"
#include "support/test_room.h"

#include <QtTest>

#include <cmath>
#include <csignal>
#include <filesystem>

namespace mr::test::tst_cli {

namespace {

QString key(const char* text)
{
    return QString::fromLatin1(text);
}

double number(const QJsonObject& object, const char* field)
{
    return object[key(field)].toDouble(std::nan(""));
}

// `arguments` with another value of an option that they have.
QStringList with(QStringList arguments, const char* option, const QString& value)
{
    arguments[arguments.indexOf(key(option)) + 1] = value;
    return arguments;
}

} // namespace

class TestCli : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void trainSaysWhatItDoesInOneJsonObjectALine();
    void withoutJsonItSpeaksToPeople();
    void aRunThatMadeTheModelWorseSaysSo();
    void columnsThatAreNotUsedAreNamed();
    void aModelWithoutATemplateIsTaughtToChat();
    void aRunIsAskedAsItWasTrained();
    void wrongUseEndsWithTwoAndNamesTheOption_data();
    void wrongUseEndsWithTwoAndNamesTheOption();
    void whatIsNotBuiltIsRefusedByName_data();
    void whatIsNotBuiltIsRefusedByName();
    void aDeviceThatIsNotHereEndsWithTwo();
    void aRunThatDoesNotFitEndsWithThree();
    void aPolicyThatLacksAFolderSaysWhichOption();
    void anInterruptSavesAndEndsWith130();
    void aSecondSignalEndsTheProgram();
    void aClosedTerminalSavesHoweverOftenItSays();
    void underNohupAClosedTerminalStopsNothing();
    void aReaderThatHasGoneEndsNoRun();
    void outputThatNobodyReadsIsSaid();
    void outputThatCannotBeWrittenIsSaid_data();
    void outputThatCannotBeWrittenIsSaid();
    void withoutStandardOutputNoFileTakesItsPlace();
    void aLimitOfFileSizesIsTakenAsAFullDisk();
    void aRunFolderNeedNotBeUtf8();
    void aPathThatTheRecordCannotHoldIsRefused_data();
    void aPathThatTheRecordCannotHoldIsRefused();
    void moreThreadsThanAnyMachineHasAreRefused_data();
    void moreThreadsThanAnyMachineHasAreRefused();
    void anUnknownOpOfTheSelftestIsRefused();
    void aHistoryWhoseNameIsTooLongIsRefusedInASentence();
    void aNameCommandsNoTerminal();
    void aConfigCommandsNoTerminal();
    void aMistypedWordIsAnsweredWithTheOneThatWasMeant_data();
    void aMistypedWordIsAnsweredWithTheOneThatWasMeant();
    void anInterruptWhileTheScratchFileIsWrittenRemovesIt();
    void whatCannotBeSavedEndsWithFourAndSaysWhatIsSafe();
    void aRunFolderIsWrittenByOneProcess();
    void aLostHistoryIsRebuiltFromARunFolder();
    void aRunThatWaitsGoesOnByItself();
    void anInterruptWhileItWaitsEndsWithFour();
    void helpEndsWithZero();
    void aDiskThatWasMeasuredIsKnownToPlans();
    void planTellsBytesOfTiersForEveryPolicy();
    void planComparesTheMethods();
    void planReadsTheDataAndSaysWhatPackingWouldSave();
    void aPackedRunSaysSoAndIsRecorded();
    void planWorksFromAConfigAlone();
    void inspectSaysWhatAThingIs();
    void inspectSaysWhatIsWrong();
    void inspectNamesTheBestCheckpointAndTheBrokenOnes();
    void runsListsShowsComparesAndExports();
    void tokenizePrintsAnObjectForEachInput();
    void generateIsTheSameEveryTime();
    void aChatGoesThroughTheTemplateAndPrintsTheAnswerAlone();
    void aRunFolderIsAskedForItsNewestModel();
    void evalReachesTheKnownFigures_data();
    void evalReachesTheKnownFigures();
    void greedyTextIsTheKnownStory();
    void aTokenizerOfAnotherModelIsRefusedByEveryCommand();
    void numbersThatAreNotFiniteEndWithFour();
    void badFiguresAreRefusedByEveryCommand_data();
    void badFiguresAreRefusedByEveryCommand();
    void malformedFilesAreRefusedAndNeverCrash();
    void trainingFromScratchNeedsNoWeights();

private:
    std::unique_ptr<CliRig> m_rig;
    Finished m_first; // six steps, in folder "first", run 1
};

void TestCli::initTestCase()
{
    m_rig = std::make_unique<CliRig>();
    m_first =
        m_rig->run(m_rig->train("first", words("--steps 6 --eval-every 3 --checkpoint-every 2")));
    QVERIFY2(m_first.code == 0, m_first.errors.constData());
}

void TestCli::trainSaysWhatItDoesInOneJsonObjectALine()
{
    const auto starts = m_first.events("start");
    const auto steps = m_first.events("step");
    const auto ends = m_first.events("end");

    QCOMPARE(starts.size(), std::size_t{1});
    QCOMPARE(m_first.lines().front(), starts[0]);
    for (const char* field :
        {"run_id", "run_dir", "device", "simulated_link", "policy", "exact", "parameters", "plan"})
        QVERIFY2(starts[0].contains(key(field)), field);
    QCOMPARE(steps.size(), std::size_t{6});
    for (const QJsonObject& step : steps) {
        for (const char* field : {"step", "loss", "lr", "grad_norm", "tokens", "loss_tokens",
                 "wall_ms", "compute_ms", "stall_ms", "h2d_bytes", "d2h_bytes", "disk_read_bytes",
                 "disk_write_bytes", "device_peak_bytes", "host_peak_bytes", "staleness"})
            QVERIFY2(step.contains(key(field)), field);
        const QJsonObject stalls = step[key("stall_ms")].toObject();
        double sum = number(step, "compute_ms");
        for (const char* cause : {"h2d", "d2h", "host_update", "disk", "data", "other"})
            sum += number(stalls, cause);
        // Whole microseconds printed as milliseconds: exact except for the sum in binary.
        QVERIFY(std::abs(sum - number(step, "wall_ms")) < 1e-9 * (1.0 + sum));
    }
    QCOMPARE(ends.size(), std::size_t{1});
    QCOMPARE(m_first.lines().back(), ends[0]);
    QCOMPARE(ends[0][key("status")].toString(), key("done"));
    QCOMPARE(ends[0][key("steps")].toInt(), 6);
    QCOMPARE(number(ends[0], "final_loss"), number(steps.back(), "loss"));
    QCOMPARE(m_first.hash().size(), std::size_t{32});
    QCOMPARE(m_first.events("eval").size(), std::size_t{3});
    QCOMPARE(m_first.events("checkpoint").size(), std::size_t{3});
    QCOMPARE(m_first.events("checkpoint").back()[key("weights_hash")].toString().toStdString(),
        m_first.hash());
}

void TestCli::withoutJsonItSpeaksToPeople()
{
    QStringList arguments = m_rig->train("people", words("--steps 2"));
    arguments.removeAll(key("--json"));

    const Finished run = m_rig->run(arguments);

    QCOMPARE(run.code, 0);
    QVERIFY(run.says("Data: 60 rows, 0 of them cut, 0 with nothing"));
    QVERIFY(contains(run.out.toStdString(), "step     2  loss"));
    QVERIFY(contains(run.out.toStdString(), "done: the model is in"));
}

void TestCli::aRunThatMadeTheModelWorseSaysSo()
{
    const QStringList ruinous =
        with(m_rig->train("ruined", words("--steps 6 --eval-every 3 --hold-out 0.1")), "--lr",
            key("10"));
    QStringList plain = with(ruinous, "--out", m_rig->path("ruined_too"));
    plain.removeAll(key("--json"));

    const Finished json = m_rig->run(ruinous);
    const Finished people = m_rig->run(plain);
    const Finished list = m_rig->run({key("runs"), key("--db"), m_rig->database()});

    QVERIFY2(json.code == 0, json.errors.constData());
    const QJsonObject end = json.events("end").at(0);
    QVERIFY(number(end, "eval_after") > number(end, "eval_before"));
    const QString worse = end[key("worse")].toString();
    QVERIFY2(worse.startsWith(key("Worse than before training: ")), qPrintable(worse));
    QVERIFY(people.says(worse.toStdString()));
    QVERIFY(list.out.contains(worse.toUtf8()));
    QVERIFY(!m_first.events("end").at(0).contains(key("worse")));
}

void TestCli::columnsThatAreNotUsedAreNamed()
{
    m_rig->folder.write("more.jsonl",
        R"({"id":"1","prompt":"How many?","response":"Four sacks.","source":"x"})"
        "\n");
    const QStringList asked =
        with(m_rig->train("unused", words("--steps 1")), "--data", m_rig->path("more.jsonl"));
    QStringList plain = with(asked, "--out", m_rig->path("unused_too"));
    plain.removeAll(key("--json"));

    const Finished json = m_rig->run(asked);
    const Finished people = m_rig->run(plain);

    QVERIFY2(json.code == 0, json.errors.constData());
    const QJsonObject data = json.events("start").at(0)[key("data")].toObject();
    QCOMPARE(data[key("unused_columns")].toArray(), (QJsonArray{key("id"), key("source")}));
    QCOMPARE(data[key("layout")].toString(), key("prompt and response by name"));
    QCOMPARE(data[key("mapping")].toObject()[key("response")].toString(), key("response"));
    QVERIFY(people.says("data: prompt and response by name: prompt=prompt, response=response; "
                        "not used: \"id\", \"source\""));
}

void TestCli::aModelWithoutATemplateIsTaughtToChat()
{
    m_rig->folder.write("chats.jsonl",
        R"({"conversations":[{"from":"human","value":"Hi"},{"from":"gpt","value":"Four"}]})"
        "\n");
    const QStringList asked =
        with(with(m_rig->train("taught", words("--steps 1")), "--seq-len", key("64")), "--data",
            m_rig->path("chats.jsonl"));

    const Finished refused = m_rig->run(asked);
    const Finished unknown = m_rig->run(asked + words("--chat-template nonesuch"));
    const Finished taught = m_rig->run(asked + words("--chat-template chatml"));
    const Finished answer = m_rig->run({key("generate"), key("--model"), m_rig->path("taught"),
        key("--prompt"), key("Hi"), key("--max-tokens"), key("2"), key("--chat")});

    QCOMPARE(refused.code, 2);
    QVERIFY2(refused.says("--chat-template chatml"), refused.errors.constData());
    QVERIFY(!refused.says("line 1"));
    QVERIFY(unknown.code == 2 && unknown.says("want chatml, llama3 or a file"));
    QVERIFY2(taught.code == 0, taught.errors.constData());
    QVERIFY2(answer.code == 0, answer.errors.constData());
}

void TestCli::aRunIsAskedAsItWasTrained()
{
    m_rig->folder.write("text.txt", "two and two are four and four and four are eight\n");
    const QStringList brief = words("--steps 1 --checkpoint-every 1");
    const Finished pairs = m_rig->run(m_rig->train("paired", brief));
    const Finished text =
        m_rig->run(with(m_rig->train("told", brief), "--data", m_rig->path("text.txt")));
    QVERIFY2(pairs.code == 0 && text.code == 0, (pairs.errors + text.errors).constData());
    const auto readBy = [&](const char* model, const QStringList& more = {}) {
        const Finished asked = m_rig->run(words("generate --json --prompt two? --max-tokens 1") +
                                          QStringList{key("--model"), m_rig->path(model)} + more);
        const QJsonObject answer = QJsonDocument::fromJson(asked.out).object();
        return asked.code == 0 ? answer[key("prompt")].toString(key("two?")) : key("failed");
    };

    QCOMPARE(readBy("paired"), key("two?\n"));
    QCOMPARE(readBy("paired/model"), key("two?\n"));
    QCOMPARE(readBy("paired/checkpoints/step-00000001"), key("two?\n"));
    QCOMPARE(readBy("paired", words("--text")), key("two?"));
    QCOMPARE(readBy("paired", words("--system Add.")), key("Add.\ntwo?\n"));
    QCOMPARE(readBy("told"), key("two?"));
    const Finished people = m_rig->run(words("generate --prompt two? --max-tokens 1 --model") +
                                       QStringList{m_rig->path("paired")});
    QCOMPARE(people.out.left(5), QByteArray("two?\n"));
}

void TestCli::wrongUseEndsWithTwoAndNamesTheOption_data()
{
    QTest::addColumn<QStringList>("more");
    QTest::addColumn<QString>("said");
    QTest::newRow("unknown option") << words("--learning-rat 1") << "--learning-rat";
    QTest::newRow("not a number") << words("--steps many") << "--steps";
    QTest::newRow("negative rate") << words("--steps 1 --weight-decay -2") << "weight-decay is -2";
    QTest::newRow("no such schedule") << words("--steps 1 --schedule zigzag") << "zigzag";
    QTest::newRow("no such policy") << words("--steps 1 --policy fastest") << "fastest";
    QTest::newRow("option without value")
        << words("--steps 1 --policy-option order") << "key=value";
    QTest::newRow("no such order")
        << words("--steps 1 --policy-option order=sideways") << "sideways";
    QTest::newRow("size without number") << words("--steps 1 --device-memory lots") << "lots";
    QTest::newRow("twice") << words("--steps 1 --lr 1") << "--lr";
    QTest::newRow("bad column map") << words("--steps 1 --map prompt") << "--map";
    QTest::newRow("no such column")
        << words("--steps 1 --map prompt=question,response=answer") << "question";
    QTest::newRow("everything held out") << words("--steps 1 --hold-out 2") << "hold-out";
    QTest::newRow("no such file") << words("--steps 1 --data /nowhere/x.jsonl")
                                  << "/nowhere/x.jsonl";
    QTest::newRow("no such evaluation file")
        << words("--steps 1 --eval-data /nowhere/y.jsonl") << "/nowhere/y.jsonl";
    QTest::newRow("disk space nowhere")
        << words("--steps 1 --disk-space 10GB") << "name a folder on an SSD with disk-path";
    QTest::newRow("most disk writes") << words("--steps 1 --max-disk-writes 100XB") << "100XB";
    QTest::newRow("no such answer to a full disk")
        << words("--steps 1 --on-disk-full panic") << "want stop, wait or skip";
    QTest::newRow("two models") << words("--steps 1 --from-scratch c.json") << "from scratch";
}

void TestCli::wrongUseEndsWithTwoAndNamesTheOption()
{
    QFETCH(QStringList, more);
    QFETCH(QString, said);

    const Finished run = m_rig->run(m_rig->train("wrong", more));

    QCOMPARE(run.code, 2);
    QVERIFY(run.says(said.toStdString()));
    QVERIFY(run.events("start").empty());
}

void TestCli::whatIsNotBuiltIsRefusedByName_data()
{
    QTest::addColumn<QStringList>("more");
    QTest::addColumn<QString>("said");
    QTest::newRow("galore") << words("--method galore") << "galore";
    QTest::newRow("compact state") << words("--policy-option state=compact") << "state";
    QTest::newRow("late where nothing is late")
        << words("--policy resident --policy-option late=0.25") << "late";
    QTest::newRow("clip mode") << words("--policy-option clip-mode=previous-norm")
                               << "previous-norm";
}

void TestCli::whatIsNotBuiltIsRefusedByName()
{
    QFETCH(QStringList, more);
    QFETCH(QString, said);

    const Finished run = m_rig->run(m_rig->train("not-built", more));

    QCOMPARE(run.code, 2);
    QVERIFY(run.says(said.toStdString()));
    QVERIFY(!std::filesystem::exists(m_rig->folder.path("not-built")));
}

// On every machine, because the plugin that is named is nowhere. A plan needs no card.
void TestCli::aDeviceThatIsNotHereEndsWithTwo()
{
    qputenv("MILLRACE_CUDA_PLUGIN", "/nowhere/libmillrace-cuda.so");

    const Finished train = m_rig->run(m_rig->train("no-card", words("--device cuda")));
    const Finished test = m_rig->run(words("selftest --device cuda"));
    const Finished sized =
        m_rig->run(m_rig->train("no-card", words("--device cuda --device-memory 24GiB --dry-run")));
    qunsetenv("MILLRACE_CUDA_PLUGIN");

    QCOMPARE(train.code, 2);
    QVERIFY(train.says("/nowhere/libmillrace-cuda.so does not exist"));
    QVERIFY(train.says("give it --device-memory"));
    QVERIFY(!std::filesystem::exists(m_rig->folder.path("no-card")));
    QCOMPARE(test.code, 2);
    QCOMPARE(sized.code, 0);
}

void TestCli::aRunThatDoesNotFitEndsWithThree()
{
    const QStringList more = words("--steps 2 --policy resident --device-memory 200KiB");

    const Finished run = m_rig->run(m_rig->train("too-small", more));
    const Finished dry = m_rig->run(m_rig->train("too-small", more + words("--dry-run")));

    QCOMPARE(run.code, 3);
    QVERIFY(run.says("device memory: needs"));
    QCOMPARE(run.events("error").size(), std::size_t{1});
    QCOMPARE(dry.code, 3);
    QCOMPARE(dry.lines().size(), std::size_t{1});
    QVERIFY(!dry.lines()[0][key("fits")].toBool(true));
}

void TestCli::aPolicyThatLacksAFolderSaysWhichOption()
{
    const QStringList more = words("--steps 2 --policy zenflow --policy-option disk-share=0.5");

    const Finished run = m_rig->run(m_rig->train("no-folder", more));

    QCOMPARE(run.code, 3);
    QVERIFY2(run.says("no scratch folder is named for it (--disk-path)\n  Keep the optimizer"),
        run.errors.constData());
}

void TestCli::anInterruptSavesAndEndsWith130()
{
    const QStringList steps = words("--steps 400 --eval-every 0");
    QProcess process;
    CliRig::start(process, m_rig->train("interrupted", steps));
    while (!process.readLine().contains("\"event\":\"step\""))
        QVERIFY(process.canReadLine() || process.waitForReadyRead(30'000));
    ::kill(static_cast<pid_t>(process.processId()), SIGINT);

    const Finished stopped = CliRig::finish(process);
    const Finished resumed = m_rig->run(m_rig->resume("interrupted"));
    const Finished whole = m_rig->run(m_rig->train("not-interrupted", steps));

    QCOMPARE(stopped.code, 130);
    QVERIFY(stopped.says("stopping after this step"));
    QCOMPARE(stopped.events("end")[0][key("status")].toString(), key("stopped"));
    QVERIFY2(resumed.code == 0, resumed.errors.constData());
    QCOMPARE(whole.code, 0);
    QCOMPARE(resumed.hash(), whole.hash());
    QCOMPARE(m_rig->run(m_rig->resume("interrupted")).code, 2); // it is done
}

// Without waiting for the step, which takes long enough.
void TestCli::aSecondSignalEndsTheProgram()
{
    QStringList arguments = m_rig->train("impatient", words("--steps 4 --eval-every 0"));
    arguments[arguments.indexOf(key("--accumulate")) + 1] = key("3000");
    QProcess process;
    CliRig::start(process, arguments);
    while (!process.readLine().contains("\"event\":\"start\""))
        QVERIFY(process.canReadLine() || process.waitForReadyRead(30'000));
    process.setReadChannel(QProcess::StandardError);
    ::kill(static_cast<pid_t>(process.processId()), SIGINT);
    while (!process.readLine().contains("stopping"))
        QVERIFY(process.canReadLine() || process.waitForReadyRead(30'000));
    QVERIFY(!process.waitForFinished(50)); // it is in its step
    ::kill(static_cast<pid_t>(process.processId()), SIGTERM);

    QVERIFY(process.waitForFinished(60'000));

    QCOMPARE(process.exitStatus(), QProcess::CrashExit);
    QCOMPARE(process.exitCode(), SIGTERM);
}

// A step that takes long, so that signals come within it.
QStringList longSteps(const CliRig& rig, const char* out)
{
    QStringList arguments = rig.train(out, words("--steps 2 --eval-every 0"));
    arguments[arguments.indexOf(key("--accumulate")) + 1] = key("2000");
    return arguments;
}

// With SIGHUP as a terminal leaves it, or as nohup does.
void startWith(QProcess& process, void (*hangUp)(int), const QStringList& arguments)
{
    process.setChildProcessModifier([hangUp] { (void)::signal(SIGHUP, hangUp); });
    CliRig::start(process, arguments);
    while (!process.readLine().contains("\"event\":\"start\""))
        if (!process.canReadLine() && !process.waitForReadyRead(30'000))
            qFatal("the run does not start");
}

// The shell and the kernel both send one, and a session that ends sends SIGTERM beside them.
void TestCli::aClosedTerminalSavesHoweverOftenItSays()
{
    QProcess process;
    startWith(process, SIG_DFL, longSteps(*m_rig, "hung-up"));
    process.setReadChannel(QProcess::StandardError);
    const auto id = static_cast<pid_t>(process.processId());
    ::kill(id, SIGHUP);
    while (!process.readLine().contains("stopping"))
        QVERIFY(process.canReadLine() || process.waitForReadyRead(30'000));
    ::kill(id, SIGHUP);
    ::kill(id, SIGTERM);

    const Finished stopped = CliRig::finish(process);

    QCOMPARE(stopped.code, 130);
    QCOMPARE(stopped.events("end")[0][key("status")].toString(), key("stopped"));
    QCOMPARE(stopped.events("checkpoint").size(), std::size_t{1});
    QVERIFY(!stopped.errors.contains("stopping")); // once
}

void TestCli::underNohupAClosedTerminalStopsNothing()
{
    QProcess process;
    startWith(process, SIG_IGN, m_rig->train("nohup", words("--steps 20 --eval-every 0")));
    ::kill(static_cast<pid_t>(process.processId()), SIGHUP);

    const Finished run = CliRig::finish(process);

    QCOMPARE(run.code, 0);
    QCOMPARE(run.events("end")[0][key("steps")].toInt(), 20);
}

void TestCli::aReaderThatHasGoneEndsNoRun()
{
    const Finished run = m_rig->shell("{ \"$0\" \"$@\"; echo \"code $?\" >&2; } | head -n 1",
        m_rig->train("headed", words("--steps 6 --eval-every 0")));

    QCOMPARE(run.lines().size(), std::size_t{1});
    QVERIFY2(run.says("code 0"), run.errors.constData());
    QVERIFY(!run.errors.contains("standard output"));
    QVERIFY(std::filesystem::exists(m_rig->folder.path("headed") + "/model/model.safetensors"));
}

// A pipe holds 64 KiB, less than the records of these steps.
void TestCli::outputThatNobodyReadsIsSaid()
{
    const Finished run = m_rig->shell("\"$0\" \"$@\" | { sleep 5; cat; }",
        m_rig->train("unread", words("--steps 300 --eval-every 0")));

    QVERIFY2(run.says("standard output is full and nobody reads it"), run.errors.constData());
    QVERIFY2(run.says("standard output is read again"), run.errors.constData());
    QCOMPARE(run.events("end")[0][key("steps")].toInt(), 300);
}

void TestCli::outputThatCannotBeWrittenIsSaid_data()
{
    QTest::addColumn<QStringList>("arguments");
    QTest::newRow("train") << m_rig->train("full", words("--steps 2 --eval-every 0"));
    QTest::newRow("runs") << words("runs --db") + QStringList{m_rig->database()};
    QTest::newRow("inspect") << QStringList{key("inspect"), m_rig->modelPath()};
    QTest::newRow("help") << words("train --help");
}

void TestCli::outputThatCannotBeWrittenIsSaid()
{
    QFETCH(QStringList, arguments);

    const Finished run = m_rig->shell("exec \"$0\" \"$@\" > /dev/full", arguments);

    QCOMPARE(run.code, 4);
    QVERIFY2(run.says("standard output could not be written (No space left"), run.errors);
}

// The database would be the next file that is opened, and would get the lines.
void TestCli::withoutStandardOutputNoFileTakesItsPlace()
{
    QStringList arguments = m_rig->train("closed", words("--steps 2 --eval-every 0"));
    arguments[arguments.indexOf(m_rig->database())] = m_rig->path("closed.db");

    const Finished run = m_rig->shell("exec \"$0\" \"$@\" >&- <&-", arguments);

    QVERIFY2(run.code == 0, run.errors.constData());
    const auto rows = m_rig->run(words("runs --json --db") + QStringList{m_rig->path("closed.db")});
    QCOMPARE(rows.lines()[0][key("status")].toString(), key("done"));
}

void TestCli::aLimitOfFileSizesIsTakenAsAFullDisk()
{
    m_rig->folder.write("large.json", R"({"architectures": ["LlamaForCausalLM"],
        "model_type": "llama", "hidden_size": 256, "intermediate_size": 512,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4,
        "vocab_size": 400, "max_position_embeddings": 64, "rms_norm_eps": 1e-05,
        "tie_word_embeddings": true})");
    QStringList arguments = m_rig->train(
        "limited", words("--steps 4 --checkpoint-every 3 --eval-every 0 --policy resident"));
    arguments[arguments.indexOf(key("--model"))] = key("--from-scratch");
    arguments[arguments.indexOf(m_rig->modelPath())] = m_rig->path("large.json");
    arguments << key("--tokenizer") << m_rig->modelPath();

    const Finished run = m_rig->shell("ulimit -f 4096; exec \"$0\" \"$@\"", arguments); // 2 MiB

    QCOMPARE(run.code, 4);
    QVERIFY2(run.says("stopped at step 3"), run.errors.constData());
    QVERIFY2(run.says("ulimit -f"), run.errors.constData());
    QCOMPARE(run.events("end")[0][key("status")].toString(), key("stopped"));
}

// $D holds the folder of the test, and 377 a byte that no UTF-8 has.
void TestCli::aRunFolderNeedNotBeUtf8()
{
    qputenv("D", QByteArray::fromStdString(m_rig->folder.path("")));
    QStringList arguments = m_rig->train("", words("--steps 2 --eval-every 0"));
    arguments.remove(arguments.indexOf(key("--out")), 2);

    const Finished run =
        m_rig->shell("exec \"$0\" \"$@\" --out \"$D/$(printf 'run\\377')\"", arguments);
    const Finished again =
        m_rig->shell("exec \"$0\" resume --json \"$D/$(printf 'run\\377')\"", {});

    QVERIFY2(run.code == 0, run.errors.constData());
    QCOMPARE(run.events("end")[0][key("status")].toString(), key("done"));
    QCOMPARE(again.code, 2);
    QVERIFY2(again.says("has done all of its 2 steps"), again.errors.constData());
    std::filesystem::remove_all(m_rig->folder.path("run\xff")); // Qt cannot name it
}

void TestCli::aPathThatTheRecordCannotHoldIsRefused_data()
{
    QTest::addColumn<QString>("option");
    QTest::newRow("data") << "--data";
    QTest::newRow("evaluation") << "--eval-data";
    QTest::newRow("database") << "--db";
    QTest::newRow("disk") << "--disk-path";
}

void TestCli::aPathThatTheRecordCannotHoldIsRefused()
{
    QFETCH(QString, option);
    qputenv("D", QByteArray::fromStdString(m_rig->folder.path("")));
    qputenv("O", option.toLatin1());
    QStringList arguments = m_rig->train("unrecordable", words("--steps 2"));
    if (arguments.contains(option) && option != key("--data"))
        arguments.remove(arguments.indexOf(option), 2);

    const Finished run = m_rig->shell("x=\"$D/$(printf 'x\\377')\"; cp \"$D/pairs.jsonl\" \"$x\"; "
                                      "exec \"$0\" \"$@\" \"$O\" \"$x\"",
        arguments);

    QCOMPARE(run.code, 2);
    QVERIFY2(run.says("x\\xff: this path is not UTF-8"), run.errors.constData());
    QVERIFY(std::filesystem::remove(m_rig->folder.path("x\xff"))); // Qt cannot name it
    QVERIFY(!std::filesystem::exists(m_rig->folder.path("unrecordable")));
}

void TestCli::moreThreadsThanAnyMachineHasAreRefused_data()
{
    QTest::addColumn<QStringList>("arguments");
    const QStringList model{key("--model"), m_rig->modelPath()};
    QTest::newRow("resume") << m_rig->resume("first") + words("--threads 100000");
    QTest::newRow("eval") << words("eval --threads 100000 --data") +
                                 QStringList{m_rig->path("pairs.jsonl")} + model;
    QTest::newRow("generate") << words("generate --threads 100000 --prompt a") + model;
    QTest::newRow("bench") << words("bench matmul --threads 100000");
    QTest::newRow("selftest") << words("selftest --threads 100000");
    QTest::newRow("beyond 32 bits") << words("bench matmul --threads 4294967297");
    QTest::newRow("a stranger's folder") << m_rig->resume("strange");
}

void TestCli::moreThreadsThanAnyMachineHasAreRefused()
{
    QFETCH(QStringList, arguments);
    std::string record = readFile(m_rig->folder.path("first") + "/run.json");
    const std::string_view one = "\\\"threads\\\":1,";
    const std::size_t at = record.find(one, record.find("\"config\":"));
    QVERIFY(at != std::string::npos);
    record.replace(at, one.size(), "\\\"threads\\\":100000,");
    std::filesystem::create_directories(m_rig->folder.path("strange"));
    m_rig->folder.write("strange/run.json", record);

    const Finished run = m_rig->run(arguments);

    QCOMPARE(run.code, 2);
    QVERIFY2(run.says("it must be from 0 to 4096"), run.errors.constData());
}

void TestCli::anUnknownOpOfTheSelftestIsRefused()
{
    const Finished list = m_rig->run(words("selftest --list-ops"));
    const Finished run = m_rig->run(words("selftest --op swigloo"));

    QCOMPARE(list.code, 0);
    QVERIFY(list.out.split('\n').contains("swiglu"));
    QCOMPARE(run.code, 2);
    QVERIFY2(run.says("--op swigloo: no op has this name"), run.errors.constData());
}

void TestCli::aHistoryWhoseNameIsTooLongIsRefusedInASentence()
{
    QStringList arguments = m_rig->train("long-history", words("--steps 1 --eval-every 0"));
    const std::string name(250, 'h'); // SQLite's files beside it have longer ones
    arguments[arguments.indexOf(m_rig->database())] = m_rig->path(name.c_str());

    const Finished run = m_rig->run(arguments);

    QCOMPARE(run.code, 4);
    QVERIFY2(run.says("the name is too long; name another file"), run.errors.constData());
    QVERIFY(!run.errors.contains("PRAGMA"));
}

// A title of the window, and a row of its own.
void TestCli::aNameCommandsNoTerminal()
{
    QStringList arguments = m_rig->train("named", words("--steps 1 --eval-every 0 --name"));
    arguments << key("a\x1b]0;b\x07\n   9  done");
    arguments[arguments.indexOf(m_rig->database())] = m_rig->path("named.db");
    QVERIFY(m_rig->run(arguments).code == 0);

    const Finished runs = m_rig->run(words("runs --db") + QStringList{m_rig->path("named.db")});

    QCOMPARE(runs.out.count('\n'), 1);
    QVERIFY2(runs.out.contains("a\\x1b]0;b\\x07\\n   9  done"), runs.out.constData());
}

void TestCli::aConfigCommandsNoTerminal()
{
    const Folder model;
    std::string config = smallModelConfig();
    config.insert(config.find('{') + 1, R"("hidden_act": "\u001b[2J\u009b2J", )");
    model.write("config.json", config);

    const Finished run = m_rig->run({key("eval"), key("--data"), m_rig->path("pairs.jsonl"),
        key("--model"), QString::fromStdString(model.path())});

    QCOMPARE(run.code, 2);
    QVERIFY2(run.says(R"(\x1b[2J\u009b2J)"), run.errors.constData());
    QVERIFY(!run.errors.contains('\x1b'));
}

void TestCli::aMistypedWordIsAnsweredWithTheOneThatWasMeant_data()
{
    QTest::addColumn<QStringList>("arguments");
    QTest::addColumn<QString>("said");
    QTest::newRow("command") << words("trian") << "no command trian; did you mean train?";
    QTest::newRow("nothing like it") << words("fly --json") << "no command fly\n";
    QTest::newRow("begun") << words("train --data x --epoch 2")
                           << "train has no option --epoch; did you mean --epochs?";
    QTest::newRow("below another")
        << words("runs export 1 --cvs") << "export has no option --cvs; did you mean --csv?";
    QTest::newRow("setting of a run") << words("resume /nowhere --optimizer adamw")
                                      << "a run goes on with the settings it began with; to change "
                                         "them, begin another from its model";
    QTest::newRow("weights rounded to nearest") << words("train --data x --model y --weights bf16")
                                                << "use bf16-random (2 bytes) or 24bit (3 bytes)";
    QTest::newRow("with its value")
        << words("plan --see=3") << "plan has no option --see; did you mean --seed?";
}

void TestCli::aMistypedWordIsAnsweredWithTheOneThatWasMeant()
{
    QFETCH(QStringList, arguments);
    QFETCH(QString, said);

    const Finished run = m_rig->run(arguments);

    QCOMPARE(run.code, 2);
    QVERIFY2(run.says(said.toStdString()), run.errors.constData());
}

// Some hundred MB of it; nothing is trained.
void TestCli::anInterruptWhileTheScratchFileIsWrittenRemovesIt()
{
    m_rig->folder.write("wide.json", R"({"architectures": ["LlamaForCausalLM"],
        "model_type": "llama", "hidden_size": 1024, "intermediate_size": 2816,
        "num_hidden_layers": 4, "num_attention_heads": 16, "num_key_value_heads": 8,
        "vocab_size": 400, "max_position_embeddings": 64, "rms_norm_eps": 1e-05,
        "tie_word_embeddings": true})");
    const std::string disk = m_rig->folder.path("scratch");
    std::filesystem::create_directories(disk);
    QStringList arguments =
        m_rig->train("filling", words("--steps 2 --policy ssd-vertical --device cpu --disk-path"));
    arguments << QString::fromStdString(disk);
    arguments[arguments.indexOf(key("--model"))] = key("--from-scratch");
    arguments[arguments.indexOf(m_rig->modelPath())] = m_rig->path("wide.json");
    arguments << key("--tokenizer") << m_rig->modelPath();
    QProcess process;
    CliRig::start(process, arguments);
    while (std::filesystem::is_empty(disk))
        QVERIFY2(!process.waitForFinished(1), process.readAllStandardError().constData());
    ::kill(static_cast<pid_t>(process.processId()), SIGINT);

    const Finished stopped = CliRig::finish(process);

    QCOMPARE(stopped.code, 130);
    QVERIFY2(stopped.events("start").empty(), stopped.errors.constData());
    QCOMPARE(stopped.events("end")[0][key("status")].toString(), key("stopped"));
    QVERIFY2(stopped.says("stopped while the scratch file"), stopped.errors.constData());
    QVERIFY(std::filesystem::is_empty(disk));
    const auto rows = m_rig->run(words("runs --json --db") + QStringList{m_rig->database()});
    QCOMPARE(rows.lines()[0][key("status")].toString(), key("stopped"));
}

// In the place of the folder of checkpoints lies a file: they cannot be written.
QString inTheWay(const CliRig& rig, const char* out)
{
    const QString folder = rig.path(out);
    QDir().mkpath(folder);
    QFile file(folder + QStringLiteral("/checkpoints"));
    if (!file.open(QIODevice::WriteOnly))
        qFatal("cannot write %s", qPrintable(file.fileName()));
    return file.fileName();
}

const char* const kSixSteps = "--steps 6 --checkpoint-every 3 --eval-every 0";

// Starts a run that waits, and returns when it has said so.
void startAndWaitForThePause(QProcess& process, const CliRig& rig, const char* out)
{
    CliRig::start(process, rig.train(out, words(kSixSteps) + words("--on-disk-full wait")));
    process.setReadChannel(QProcess::StandardError);
    while (!process.readLine().contains("Paused: the checkpoint of step 3 could not be written"))
        if (!process.canReadLine() && !process.waitForReadyRead(30'000))
            qFatal("%s does not say that it is paused", out);
}

void TestCli::whatCannotBeSavedEndsWithFourAndSaysWhatIsSafe()
{
    inTheWay(*m_rig, "unsaved");

    const Finished run = m_rig->run(m_rig->train("unsaved", words(kSixSteps)));

    QCOMPARE(run.code, 4); // not on a terminal: it does not wait for anybody
    QVERIFY(run.says("stopped at step 3"));
    QVERIFY(run.says("there is no checkpoint of this run"));
    QCOMPARE(run.events("end")[0][key("status")].toString(), key("stopped"));
    QCOMPARE(run.events("end")[0][key("steps")].toInt(), 3);
}

void TestCli::aRunFolderIsWrittenByOneProcess()
{
    QProcess live;
    CliRig::start(live, m_rig->train("live", words("--steps 100000 --eval-every 0")));
    while (!live.readLine().contains("\"event\":\"step\""))
        QVERIFY(live.canReadLine() || live.waitForReadyRead(30'000));
    const QStringList other = {key("--db"), m_rig->path("another.db")};

    const Finished resumed = m_rig->run(QStringList{key("resume"), m_rig->path("live")} + other);
    const Finished trained = m_rig->run(m_rig->train("live", words("--steps 3")));

    const std::string pid = "(process " + std::to_string(live.processId()) + ")";
    for (const Finished& refused : {resumed, trained}) {
        QCOMPARE(refused.code, 2);
        QVERIFY2(refused.says(pid), refused.errors.constData());
    }
    ::kill(static_cast<pid_t>(live.processId()), SIGINT);
    QCOMPARE(CliRig::finish(live).code, 130); // stopped and saved
}

void TestCli::aLostHistoryIsRebuiltFromARunFolder()
{
    const QString database = m_rig->path("lost.db");
    QStringList train = m_rig->train("forgotten", words(kSixSteps));
    train[train.indexOf(key("--db")) + 1] = database;
    const Finished run = m_rig->run(train);
    QVERIFY2(run.code == 0, run.errors.constData());
    QVERIFY(QFile::remove(database));
    const Finished unasked = m_rig->run({key("resume"), m_rig->path("forgotten")});
    QCOMPARE(unasked.code, 2);
    QVERIFY2(unasked.says("--db " + database.toStdString()), unasked.errors.constData());
    QVERIFY(!QFile::exists(database));

    const Finished made =
        m_rig->run({key("runs"), key("rebuild"), m_rig->path("forgotten"), key("--db"), database});

    QVERIFY2(made.code == 0, made.errors.constData());
    QVERIFY2(made.out.contains("6 of 6 steps, done"), made.out.constData());
    const Finished resumed =
        m_rig->run({key("resume"), m_rig->path("forgotten"), key("--db"), database});
    QVERIFY2(resumed.says("nothing to resume"), resumed.errors.constData());
}

void TestCli::aRunThatWaitsGoesOnByItself()
{
    const QString file = inTheWay(*m_rig, "waits");
    const Finished whole = m_rig->run(m_rig->train("did-not-wait", words(kSixSteps)));
    QProcess process;
    startAndWaitForThePause(process, *m_rig, "waits");
    QVERIFY(QFile::remove(file));

    const Finished run = CliRig::finish(process);

    QVERIFY2(run.code == 0, run.errors.constData());
    QVERIFY(!run.hash().empty());
    QCOMPARE(run.hash(), whole.hash());
}

void TestCli::anInterruptWhileItWaitsEndsWithFour()
{
    inTheWay(*m_rig, "waits-in-vain");
    QProcess process;
    startAndWaitForThePause(process, *m_rig, "waits-in-vain");
    ::kill(static_cast<pid_t>(process.processId()), SIGINT);

    const Finished run = CliRig::finish(process);

    QCOMPARE(run.code, 4);
    QVERIFY(run.says("there is no checkpoint of this run"));
    QCOMPARE(run.events("end")[0][key("status")].toString(), key("stopped"));
}

void TestCli::helpEndsWithZero()
{
    QCOMPARE(m_rig->run(words("--help")).code, 0);
    QCOMPARE(m_rig->run(words("--version")).code, 0);
    for (const char* command : {"train", "resume", "eval", "generate", "tokenize", "plan",
             "inspect", "runs", "selftest", "bench"}) {
        const Finished help = m_rig->run({key(command), key("--help")});
        QVERIFY2(help.code == 0 && !help.out.isEmpty(), command);
    }
    const Finished train = m_rig->run(words("train --help"));
    for (const PolicyInfo& policy : policyTable())
        QVERIFY2(train.out.contains(std::string(policy.name).c_str()), policy.name.data());
    QVERIFY(train.out.contains("--checkpoint-minutes"));
    QCOMPARE(m_rig->run({}).code, 2);
    QCOMPARE(m_rig->run(words("fly")).code, 2);
    QCOMPARE(m_rig->run(words("bench disk --disk-path /nowhere")).code, 2);
    QCOMPARE(m_rig->run(words("bench disk --bytes 900000TB")).code, 3);
}

void TestCli::aDiskThatWasMeasuredIsKnownToPlans()
{
    const std::string folder = m_rig->folder.path("disk");
    std::filesystem::create_directories(folder);
    const std::string place = rateKey(inspectScratchFolder(folder).value());
    RateCache cache = RateCache::load(RateCache::defaultPath());
    cache.putDisk(place, {});
    QVERIFY(cache.save(RateCache::defaultPath()).ok());

    const Finished run = m_rig->run(words("bench disk --bytes 48MiB --seconds 0.3 --disk-path") +
                                    QStringList{QString::fromStdString(folder)});

    QVERIFY2(run.code == 0, run.errors.constData());
    const RateCache measured = RateCache::load(RateCache::defaultPath());
    const ScratchSpeed* speed = measured.findDisk(place);
    QVERIFY(speed != nullptr && speed->mixedReadBytesPerSecond > 0.0);
    QVERIFY(speed->mixedWriteBytesPerSecond > 0.0);
}

void TestCli::planTellsBytesOfTiersForEveryPolicy()
{
    QStringList arguments = m_rig->train("planned");
    arguments[0] = key("plan");
    const Finished plan = m_rig->run(arguments + words("--all-policies"));

    QCOMPARE(plan.code, 0);
    const auto reports = plan.lines();
    QCOMPARE(reports.size(), std::size_t{7});
    for (const QJsonObject& report : reports) {
        if (report[key("policy")] == QStringLiteral("ssd-vertical")) { // no folder was named
            QVERIFY(report[key("limit")].toString().contains(QStringLiteral("--disk-path")));
            continue;
        }
        QVERIFY(report[key("fits")].toBool());
        QVERIFY(number(report, "predicted_step_ms") > 0.0); // measured when it was asked for
        double inMemory = 0.0;                              // the device is the processor
        for (const QJsonValue value : report[key("tiers")].toArray()) {
            const QJsonObject tier = value.toObject();
            double sum = 0.0;
            for (const QJsonValue kind : tier[key("kinds")].toArray())
                sum += number(kind.toObject(), "bytes");
            QCOMPARE(sum, number(tier, "total_bytes"));
            if (tier[key("tier")] != QStringLiteral("disk"))
                inMemory += sum;
        }
        const double beside = number(report, "process_bytes") - inMemory;
        QVERIFY2(beside > 8e6 && beside < 128e6, qPrintable(QString::number(beside)));
    }
}

void TestCli::planComparesTheMethods()
{
    QStringList arguments = m_rig->train("planned");
    arguments[0] = key("plan");
    arguments += words("--all-methods");
    const Finished plan = m_rig->run(arguments);

    QVERIFY2(plan.code == 0, plan.errors.constData());
    const QJsonArray reports = QJsonDocument::fromJson(plan.out).array();
    QStringList methods;
    for (const QJsonValue report : reports)
        methods << report[key("method")].toString() + key(" ") +
                       report[key("precision")].toString();
    QCOMPARE(methods, QStringList({"full fp32", "full bf16", "blocks fp32", "blocks bf16",
                          "lora fp32", "lora bf16", "qlora fp32", "qlora bf16"}));
    QVERIFY(number(reports[0].toObject(), "predicted_step_ms") > 0.0);

    arguments.removeAll(key("--json"));
    const Finished table = m_rig->run(arguments + words("--method lora --rank 2"));

    QVERIFY2(table.code == 0, table.errors.constData());
    QCOMPARE(table.out.trimmed().count('\n'), 8);
    QVERIFY2(table.out.contains("fits, "), table.out.constData());
    QCOMPARE(m_rig->run(arguments + words("--all-policies")).code, 2);
}

// Pairs of some ten tokens in rows of 60.
QStringList planOf(const CliRig& rig, const char* more)
{
    return words("plan --json --seq-len 60 --precision fp32 --threads 1 --policy resident") +
           words(more) +
           QStringList{key("--model"), rig.modelPath(), key("--data"), rig.path("short.jsonl")};
}

void TestCli::planReadsTheDataAndSaysWhatPackingWouldSave()
{
    std::string text;
    for (int i = 0; i < 30; ++i)
        text += "{\"prompt\": \"" + std::to_string(i) + "\", \"response\": \"sacks\"}\n";
    m_rig->folder.write("short.jsonl", text + "{\"prompt\": \"a\", \"response\": \"\"}\n");

    const Finished plain = m_rig->run(planOf(*m_rig, "--accumulate 1"));
    const Finished packed = m_rig->run(planOf(*m_rig, "--accumulate 1 --pack"));

    QVERIFY2(plain.code == 0 && packed.code == 0, plain.errors.constData());
    const QJsonObject before = plain.lines()[0];
    const QJsonObject after = packed.lines()[0];
    const QJsonObject data = before[key("data")].toObject();
    QCOMPARE(data[key("rows")].toInt(), 31);
    QCOMPARE(data[key("empty_rows")].toInt(), 1);
    QCOMPARE(before[key("steps")].toInt(), data[key("sequences")].toInt());
    const int rows = data[key("packed_rows")].toInt();
    QVERIFY(rows > 0 && rows < 10);
    const QString advice = QStringLiteral("Pack short sequences (--pack): rows %1 instead of %2")
                               .arg(rows)
                               .arg(data[key("sequences")].toInt());
    QVERIFY(plain.out.contains(advice.toUtf8()));
    QCOMPARE(after[key("steps")].toInt(), rows);
    QVERIFY(after[key("data")].toObject()[key("pack")].toBool());
    QVERIFY(!packed.out.contains("--pack"));
}

void TestCli::aPackedRunSaysSoAndIsRecorded()
{
    const Finished run = m_rig->run(m_rig->train("packed", words("--steps 2 --pack")));

    QVERIFY2(run.code == 0, run.errors.constData());
    const QJsonObject data = run.events("start")[0][key("data")].toObject();
    QVERIFY(data[key("pack")].toBool());
    QVERIFY(data[key("batch_rows")].toInt() <= data[key("sequences")].toInt());
    const auto spec = readRunSpec(m_rig->folder.path("packed"));
    QVERIFY(spec.ok() && Result(spec).value().pack);
}

void TestCli::planWorksFromAConfigAlone()
{
    const Folder empty;
    const std::string config = empty.write("config.json", smallModelConfig());

    const Finished plan = m_rig->run({key("plan"), key("--model"), QString::fromStdString(config),
        key("--json"), key("--policy"), key("zero-offload")});

    QVERIFY2(plan.code == 0, plan.errors.constData());
    QCOMPARE(plan.lines()[0][key("policy")].toString(), key("zero-offload"));
}

void TestCli::inspectSaysWhatAThingIs()
{
    const auto kindOf = [&](const QString& path) {
        const Finished seen = m_rig->run({key("inspect"), path, key("--json")});
        return seen.code == 0 ? seen.lines()[0][key("kind")].toString() : key("?");
    };

    QCOMPARE(kindOf(m_rig->modelPath()), key("model"));
    QCOMPARE(kindOf(m_rig->path("pairs.jsonl")), key("dataset"));
    QCOMPARE(kindOf(m_rig->path("first")), key("run"));
    QCOMPARE(kindOf(m_rig->database()), key("history"));
    QCOMPARE(kindOf(m_rig->path("first") + key("/model")), key("model"));

    const QString alone = m_rig->path("tiny.config.json"); // told to have no weights, not no rows
    QVERIFY(QFile::copy(m_rig->modelPath() + key("/config.json"), alone));
    const Finished seen = m_rig->run({key("inspect"), alone, key("--json")});
    QCOMPARE(seen.code, 2);
    QCOMPARE(seen.lines()[0][key("kind")].toString(), key("model"));
    QVERIFY(seen.lines()[0][key("parameters")].toInteger() > 0);
}

void TestCli::inspectNamesTheBestCheckpointAndTheBrokenOnes()
{
    const QStringList steps =
        words("--steps 8 --eval-every 2 --checkpoint-every 2 --hold-out 0.1 --keep 2");
    const Finished run = m_rig->run(m_rig->train("inspected", steps));
    QCOMPARE(run.code, 0);
    double lowest = 1e9;
    int best = -1;
    for (const QJsonObject& line : run.events("checkpoint"))
        if (line[key("eval_loss")].toDouble() < lowest) {
            lowest = line[key("eval_loss")].toDouble();
            best = line[key("step")].toInt();
        }
    const QStringList ask{key("inspect"), m_rig->path("inspected"), key("--json")};
    const Finished whole = m_rig->run(ask);
    const QString file = m_rig->path("inspected/checkpoints/step-00000008/state/state.safetensors");
    QFile state(file);
    QVERIFY(state.open(QIODevice::ReadWrite));
    QVERIFY(state.seek(state.size() / 2));
    QVERIFY(state.putChar(static_cast<char>(~state.peek(1).at(0))));
    state.close();

    const Finished quick = m_rig->run(ask);
    const Finished thorough = m_rig->run(ask + words("--verify"));

    QCOMPARE(whole.code, 0);
    QVERIFY(best > 0);
    const QJsonObject named = whole.lines()[0][key("best_checkpoint")].toObject();
    QCOMPARE(named[key("step")].toInt(), best);
    QCOMPARE(named[key("eval_loss")].toDouble(), lowest);
    QCOMPARE(quick.code, 0); // lengths are as they were
    QCOMPARE(thorough.code, 2);
    QVERIFY(thorough.lines()[0][key("problems")].toArray().at(0).toString().startsWith(file));
}

void TestCli::inspectSaysWhatIsWrong()
{
    const Folder broken;
    broken.write("config.json", smallModelConfig());
    broken.write("model.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n");
    broken.write("bad.jsonl", "{\"prompt\": \"a\", \"response\": \"b\"}\n{\"prompt\": \n");
    const auto inspect = [&](const std::string& path) {
        return m_rig->run({key("inspect"), QString::fromStdString(path), key("--json")});
    };

    const Finished missing = inspect(broken.path("nothing"));
    const Finished model = inspect(broken.path());
    const Finished data = inspect(broken.path("bad.jsonl"));

    QCOMPARE(missing.code, 2);
    QVERIFY(missing.says("does not exist"));
    QCOMPARE(model.code, 2);
    QVERIFY(contains(model.out.toStdString(), "git-lfs") ||
            contains(model.errors.toStdString(), "git-lfs"));
    QCOMPARE(data.code, 2);
    QVERIFY(contains((data.out + data.errors).toStdString(), "bad.jsonl"));
    QVERIFY(contains((data.out + data.errors).toStdString(), "2"));
}

void TestCli::runsListsShowsComparesAndExports()
{
    const Finished second =
        m_rig->run(m_rig->train("second", words("--steps 3 --policy zero-offload")));
    QCOMPARE(second.code, 0);
    const QString other = QString::number(second.events("start")[0][key("run_id")].toInt());
    const QStringList db{key("--db"), m_rig->database(), key("--json")};
    const auto runs = [&](const QStringList& what) {
        return m_rig->run(words("runs") + what + db);
    };

    const Finished list = runs({});
    const Finished show = runs(words("show 1"));
    const Finished compare = runs({key("compare"), key("1"), other});
    const Finished csv = runs(words("export 1 --csv"));
    const Finished json = runs(words("export 1"));
    const Finished machine = runs(words("export 1 --machine --csv"));
    const Finished absent = runs(words("show 99999"));

    QCOMPARE(machine.code, 0); // a run of less than a second has a head and no samples
    QVERIFY(machine.out.startsWith("time_ms,device.utilization (%),"));
    QVERIFY(list.lines().size() >= 2);
    QCOMPARE(show.lines()[0][key("status")].toString(), key("done"));
    QCOMPARE(show.lines()[0][key("steps")].toInt(), 6);
    const QJsonObject differences = compare.lines()[0][key("differences")].toObject();
    QVERIFY(differences.contains(key("policy")));
    QVERIFY(!differences.contains(key("learningRate")));
    QCOMPARE(csv.out.count('\n'), 7);
    QVERIFY(csv.out.startsWith("step,loss,"));
    QCOMPARE(csv.out.split('\n')[0].count(','), csv.out.split('\n')[1].count(','));
    QCOMPARE(json.lines(), m_first.events("step")); // the history has the printed lines
    QCOMPARE(absent.code, 2);
    QVERIFY(absent.says("99999"));
}

void TestCli::tokenizePrintsAnObjectForEachInput()
{
    const QStringList base{key("tokenize"), key("--model"), m_rig->modelPath()};
    m_rig->folder.write("lines.txt", "The mill\nWater runs\n\n");

    const Finished text = m_rig->run(base + QStringList{key("--text"), key("The mill")});
    const Finished plain =
        m_rig->run(base + QStringList{key("--text"), key("The mill"), key("--no-special")});
    const Finished lines = m_rig->run(base + QStringList{key("--lines"), key("--no-special"),
                                                 key("--text-file"), m_rig->path("lines.txt")});

    const QJsonArray ids = text.lines()[0][key("ids")].toArray();
    const QJsonArray bare = plain.lines()[0][key("ids")].toArray();
    QCOMPARE(ids.size(), bare.size() + 1); // BOS in front
    QCOMPARE(lines.lines().size(), std::size_t{3});
    QCOMPARE(lines.lines()[0][key("ids")].toArray(), bare);
    QVERIFY(lines.lines()[2][key("ids")].toArray().isEmpty());
}

void TestCli::generateIsTheSameEveryTime()
{
    const QStringList base{key("generate"), key("--model"), m_rig->modelPath(), key("--prompt"),
        key("The miller"), key("--max-tokens"), key("8"), key("--json")};

    const Finished greedy = m_rig->run(base + words("--greedy"));
    const Finished sampled = m_rig->run(base + words("--seed 3 --top-p 0.9"));

    QVERIFY2(greedy.code == 0, greedy.errors.constData());
    QCOMPARE(greedy.out, m_rig->run(base + words("--greedy --threads 3")).out);
    QCOMPARE(sampled.out, m_rig->run(base + words("--seed 3 --top-p 0.9")).out);
    QVERIFY(sampled.out != greedy.out);
    const Finished chat = m_rig->run(base + words("--chat"));
    QCOMPARE(chat.code, 2);
    QVERIFY(chat.says("no chat template") && chat.says("without --chat"));
}

void TestCli::aChatGoesThroughTheTemplateAndPrintsTheAnswerAlone()
{
    const Folder model;
    for (const char* name : {"config.json", "model.safetensors", "tokenizer.model"})
        std::filesystem::copy_file(m_rig->model.path(name), model.path(name));
    model.write("chat_template.jinja",
        "{% for m in messages %}{{ '[' + m.role + '] ' + m.content + '\\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '[assistant] ' }}{% endif %}");
    const QStringList base{key("generate"), key("--model"), QString::fromStdString(model.path()),
        key("--prompt"), key("How many sacks?"), key("--max-tokens"), key("6"), key("--greedy")};

    const Finished json = m_rig->run(
        base + QStringList{key("--json"), key("--chat"), key("--system"), key("Count.")});
    const Finished text = m_rig->run(base + words("--chat"));
    const Finished noChat = m_rig->run(base + QStringList{key("--system"), key("Count.")});

    QVERIFY2(json.code == 0, json.errors.constData());
    QCOMPARE(json.lines()[0][key("prompt")].toString(),
        key("[system] Count.\n[user] How many sacks?\n[assistant] "));
    QCOMPARE(text.code, 0);
    QVERIFY(!text.out.contains("How many sacks?"));
    QVERIFY(text.out.endsWith('\n'));
    QCOMPARE(noChat.code, 2);
    QVERIFY(noChat.says("--chat"));
}

void TestCli::aRunFolderIsAskedForItsNewestModel()
{
    const Finished trained =
        m_rig->run(m_rig->train("asked", words("--steps 2 --eval-every 0 --checkpoint-every 1")));
    QVERIFY2(trained.code == 0, trained.errors.constData());
    const auto asked = [&](const char* folder) {
        return m_rig->run({key("generate"), key("--json"), key("--greedy"), key("--prompt"),
            key("The miller"), key("--max-tokens"), key("5"), key("--model"), m_rig->path(folder)});
    };

    const Finished run = asked("asked");

    QVERIFY2(run.code == 0, run.errors.constData());
    QCOMPARE(run.out, asked("asked/model").out);
    QVERIFY2(asked("asked/checkpoints/step-00000001").code == 0, run.errors.constData());
    QVERIFY(m_rig
                ->run({key("eval"), key("--model"), m_rig->path("asked"), key("--data"),
                    m_rig->path("pairs.jsonl"), key("--json")})
                .code == 0);
}

void TestCli::badFiguresAreRefusedByEveryCommand_data()
{
    QTest::addColumn<QStringList>("command");
    QTest::addColumn<QString>("said");
    QTest::newRow("blocks") << words("eval --data DATA --blocks -3") << "--blocks";
    QTest::newRow("too many blocks") << words("eval --data DATA --blocks 9999") << "--blocks 9999";
    QTest::newRow("sequence too long") << words("eval --data DATA --seq-len 65") << "64 positions";
    QTest::newRow("no data") << words("eval --data /nowhere/z") << "--data /nowhere/z";
    QTest::newRow("no text") << words("tokenize --text-file /nowhere/z")
                             << "--text-file /nowhere/z";
    QTest::newRow("no token asked for")
        << words("generate --prompt a --max-tokens 0") << "--max-tokens 0";
    QTest::newRow("temperature") << words("generate --prompt a --temperature nan")
                                 << "--temperature";
    QTest::newRow("share") << words("generate --prompt a --top-p 1.5") << "--top-p";
}

void TestCli::badFiguresAreRefusedByEveryCommand()
{
    QFETCH(QStringList, command);
    QFETCH(QString, said);
    command.replaceInStrings(key("DATA"), m_rig->path("pairs.jsonl"));

    const Finished run = m_rig->run(command + QStringList{key("--model"), m_rig->modelPath()});

    QCOMPARE(run.code, 2);
    QVERIFY(run.says(said.toStdString()));
}

void TestCli::evalReachesTheKnownFigures_data()
{
    QTest::addColumn<QString>("model");
    QTest::addColumn<QString>("data");
    QTest::addColumn<QStringList>("how");
    QTest::addColumn<double>("loss");
    QTest::newRow("stories, five stories")
        << "stories260K"
        << "tinystories_sample.txt"
        << QStringList{key("--split"), key("<|endoftext|>"), key("--seq-len"), key("512")}
        << 1.26644;
    QTest::newRow("stories, blocks")
        << "stories260K"
        << "tinystories_197k.txt" << words("--blocks 32 --seq-len 512") << 1.412945;
    QTest::newRow("stories, shakespeare")
        << "stories260K"
        << "tinyshakespeare.txt" << words("--blocks 16 --seq-len 512") << 4.407976;
    QTest::newRow("babyllama") << "babyllama"
                               << "tinystories_sample.txt"
                               << QStringList{key("--split"), key("<|endoftext|>"),
                                      key("--seq-len"), key("256")}
                               << 0.614893;
}

void TestCli::evalReachesTheKnownFigures()
{
    QFETCH(QString, model);
    QFETCH(QString, data);
    QFETCH(QStringList, how);
    QFETCH(double, loss);
    const QString shared = QString::fromStdString(sharedData());
    if (shared.isEmpty())
        return;
    const QStringList arguments{key("eval"), key("--json"), key("--model"),
        shared + key("/models/") + model, key("--data"), shared + key("/datasets/") + data};

    const Finished eval = m_rig->run(arguments + how);

    QVERIFY2(eval.code == 0, eval.errors.constData());
    const double found = number(eval.lines()[0], "loss");
    if (std::abs(found - loss) > 1e-4)
        qWarning("loss %.6f, known %.6f", found, loss);
    QVERIFY(std::abs(found - loss) <= 1e-4);
}

void TestCli::greedyTextIsTheKnownStory()
{
    const QString shared = QString::fromStdString(sharedData());
    if (shared.isEmpty())
        return;

    const Finished story = m_rig->run(
        QStringList{key("generate"), key("--json"), key("--greedy"), key("--max-tokens"), key("60"),
            key("--prompt"), QString(), key("--model"), shared + key("/models/stories260K")});

    QVERIFY2(story.code == 0, story.errors.constData());
    QVERIFY(contains(story.lines()[0][key("text")].toString().toStdString(),
        "Once upon a time, there was a little girl named Lily. She loved to play outside in the "
        "park. One day, she saw a big, red ball."));
}

void TestCli::aTokenizerOfAnotherModelIsRefusedByEveryCommand()
{
    const ChangedModel small(nlohmann::json::object({{"vocab_size", 100}}));
    const QString model = QString::fromStdString(small.folder.path());
    const QStringList device = words("--device cpu");

    const Finished eval = m_rig->run(
        QStringList{key("eval"), key("--model"), model, key("--data"), m_rig->path("pairs.jsonl")} +
        device);
    const Finished generate = m_rig->run(
        QStringList{key("generate"), key("--model"), model, key("--prompt"), key("mill")} + device);
    const Finished inspect = m_rig->run({key("inspect"), model});

    for (const Finished* each : {&eval, &generate, &inspect})
        QVERIFY2(each->code == 2, each->errors.constData());
    QVERIFY2(eval.says("they do not belong together"), eval.errors.constData());
    QVERIFY2(generate.says("they do not belong together"), generate.errors.constData());
    QVERIFY2(inspect.out.contains("they do not belong together"), inspect.out.constData());
}

void TestCli::numbersThatAreNotFiniteEndWithFour()
{
    const ChangedModel broken;
    broken.fill("model.layers.0.mlp.down_proj.weight", 3e38F);
    const QString model = QString::fromStdString(broken.folder.path());
    const QStringList train =
        with(m_rig->train("not finite", words("--steps 3 --eval-every 0")), "--model", model);

    const Finished eval = m_rig->run(QStringList{key("eval"), key("--json"), key("--model"), model,
        key("--data"), m_rig->path("pairs.jsonl"), key("--device"), key("cpu")});
    const Finished generate = m_rig->run(QStringList{key("generate"), key("--model"), model,
        key("--prompt"), key("mill"), key("--device"), key("cpu")});
    const Finished trained = m_rig->run(train);

    for (const Finished* each : {&eval, &generate, &trained}) {
        QVERIFY2(each->code == 4, each->errors.constData());
        QVERIFY2(each->says("finite"), each->errors.constData());
    }
    QVERIFY(!eval.out.contains("null"));
    QVERIFY(trained.events("end").empty());
    QVERIFY2(trained.says("nothing of it was saved"), trained.errors.constData());
}

void TestCli::malformedFilesAreRefusedAndNeverCrash()
{
    const QString shared = QString::fromStdString(sharedData());
    if (shared.isEmpty())
        return;
    int seen = 0;
    for (const char* name : {"safetensors", "lfs_pointers"}) {
        const QDir dir(shared + key("/malformed/") + key(name));
        for (const QFileInfo& file : dir.entryInfoList({key("*.safetensors")}, QDir::Files)) {
            const Folder model;
            model.write("config.json", smallModelConfig());
            model.write("model.safetensors", readFile(file.filePath().toStdString()));

            const Finished inspected =
                m_rig->run({key("inspect"), QString::fromStdString(model.path()), key("--json")});

            QVERIFY2(inspected.code == 2, qPrintable(file.fileName()));
            (void)inspected.lines();
            ++seen;
        }
    }
    QVERIFY(seen > 5);
}

void TestCli::trainingFromScratchNeedsNoWeights()
{
    QStringList arguments = m_rig->train("scratch", words("--steps 2"));
    const auto model = arguments.indexOf(key("--model"));
    arguments.remove(model, 2);
    arguments += {key("--from-scratch"), m_rig->modelPath() + key("/config.json"),
        key("--tokenizer"), m_rig->modelPath() + key("/tokenizer.model")};

    const Finished run = m_rig->run(arguments);

    QVERIFY2(run.code == 0, run.errors.constData());
    QVERIFY(std::filesystem::exists(m_rig->folder.path("scratch") + "/model/tokenizer.model"));
}

MR_TEST_WITH_APP(TestCli)

} // namespace mr::test::tst_cli

#include "tst_cli.moc"
