#include "core/store/run_store.h"
#include "core/store/schema.h"
#include "support/test_room.h"

#include <QDir>
#include <QFile>
#include <QTemporaryDir>
#include <QtTest>

#include <array>

namespace mr::test::tst_schema {

namespace {

constexpr int kNext = kSchemaVersion + 1;

Status addMood(Database& db)
{
    return db.script("ALTER TABLE run ADD COLUMN mood TEXT");
}

Status failHalfWay(Database& db)
{
    MR_TRY(db.script("CREATE TABLE half(x INTEGER)"));
    return db.script("SELECT * FROM no_such_table");
}

std::int64_t number(Database& db, std::string_view sql)
{
    return db.integer(sql).value();
}

} // namespace

class TestSchema : public QObject
{
    Q_OBJECT

private:
    static void writeFile(const QString& path, const QByteArray& content)
    {
        QFile file(path);
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(content);
    }

private Q_SLOTS:
    void newFileHasTheVersionAndThePragmas()
    {
        QTemporaryDir dir;
        auto db = openForWriting(dir.filePath("a/b/history.db").toStdString());
        QVERIFY2(db.ok(), db.status().message().c_str());
        Database& d = *db.value();
        QCOMPARE(number(d, "PRAGMA application_id"), kApplicationId);
        QCOMPARE(number(d, "PRAGMA user_version"), std::int64_t{kSchemaVersion});
        QCOMPARE(number(d, "PRAGMA auto_vacuum"), 2); // incremental
        QCOMPARE(number(d, "PRAGMA foreign_keys"), 1);
        QCOMPARE(number(d, "PRAGMA synchronous"), 1);   // normal
        QCOMPARE(number(d, "PRAGMA secure_delete"), 2); // fast
        QCOMPARE(number(d, "SELECT journal_mode='wal' FROM pragma_journal_mode"), 1);
        QCOMPARE(number(d, "SELECT count(*) FROM pragma_table_info('step')"), 22);
        QCOMPARE(number(d, "SELECT count(*) FROM sqlite_schema WHERE type='index'"
                           " AND name IN('run_recent','run_param_kv','event_run','checkpoint_run',"
                           "'export_run')"),
            5);
        QCOMPARE(QDir(dir.filePath("a/b")).entryList({"history-v*"}).size(), 0);
    }

    void olderFileIsBackedUpAndMigrated()
    {
        QTemporaryDir dir;
        auto db = openForWriting(dir.filePath("history.db").toStdString());
        QVERIFY(db.ok());
        constexpr std::array<Migration, 1> toNext = {Migration{kNext, addMood}};
        const Status migrated = migrate(*db.value(), toNext);
        QVERIFY2(migrated.ok(), migrated.message().c_str());

        QCOMPARE(number(*db.value(), "PRAGMA user_version"), std::int64_t{kNext});
        QCOMPARE(
            number(*db.value(), "SELECT count(*) FROM pragma_table_info('run') WHERE name='mood'"),
            1);
        const QStringList backups =
            QDir(dir.path()).entryList({QString("history-v%1-*.db").arg(kSchemaVersion)});
        QCOMPARE(backups.size(), 1);
        auto old = Database::open(dir.filePath(backups[0]).toStdString(), OpenMode::ReadOnly);
        QVERIFY(old.ok());
        QCOMPARE(number(*old.value(), "PRAGMA user_version"), std::int64_t{kSchemaVersion});
        QCOMPARE(
            number(*old.value(), "SELECT count(*) FROM pragma_table_info('run') WHERE name='mood'"),
            0);
        // A second time there is nothing to do.
        QVERIFY(migrate(*db.value(), toNext).ok());
        QCOMPARE(QDir(dir.path()).entryList({"history-v*.db"}).size(), 1);
    }

    void failedMigrationLeavesTheVersionBefore()
    {
        QTemporaryDir dir;
        auto db = openForWriting(dir.filePath("history.db").toStdString());
        QVERIFY(db.ok());
        constexpr std::array<Migration, 2> steps = {
            Migration{kNext, addMood}, Migration{kNext + 1, failHalfWay}};
        QVERIFY(!migrate(*db.value(), steps).ok());
        QCOMPARE(number(*db.value(), "PRAGMA user_version"), std::int64_t{kNext});
        QCOMPARE(number(*db.value(), "SELECT count(*) FROM sqlite_schema WHERE name='half'"), 0);
    }

    void newerFileIsRefusedByName()
    {
        QTemporaryDir dir;
        const std::string path = dir.filePath("history.db").toStdString();
        QVERIFY(openForWriting(path).value()->script("PRAGMA user_version=9").ok());
        for (const Status& refused :
            {openForWriting(path).status(), openForReading(path).status()}) {
            QVERIFY(!refused.ok());
            QCOMPARE(refused.kind(), ErrorKind::InvalidArgument);
            QVERIFY(refused.message().find("newer Millrace") != std::string::npos);
            QVERIFY(refused.message().find(path) != std::string::npos);
        }
    }

    void fileThatIsNoDatabaseIsRefusedByName()
    {
        QTemporaryDir dir;
        const QString path = dir.filePath("notes.txt");
        writeFile(path, QByteArray(5000, 'x'));
        for (const Status& refused : {openForWriting(path.toStdString()).status(),
                 openForReading(path.toStdString()).status()}) {
            QVERIFY(!refused.ok());
            QCOMPARE(refused.kind(), ErrorKind::DataCorrupt);
            QVERIFY(refused.message().find("notes.txt") != std::string::npos);
        }
    }

    void databaseOfAnotherProgramIsLeftAlone()
    {
        QTemporaryDir dir;
        const std::string path = dir.filePath("other.db").toStdString();
        {
            auto other = Database::open(path, OpenMode::ReadWriteCreate);
            QVERIFY(other.value()->script("CREATE TABLE t(x)").ok());
        }
        const Status refused = openForWriting(path).status();
        QVERIFY(!refused.ok());
        QVERIFY(refused.message().find("another program") != std::string::npos);
        auto other = Database::open(path, OpenMode::ReadOnly);
        QCOMPARE(number(*other.value(), "SELECT count(*) FROM sqlite_schema"), 1);
    }

    void damagedFileIsRefusedByName()
    {
        QTemporaryDir dir;
        const QString path = dir.filePath("history.db");
        QVERIFY(openForWriting(path.toStdString()).ok());
        QFile file(path);
        QVERIFY(file.open(QIODevice::ReadWrite));
        QVERIFY(file.size() > 4096 * 8);
        file.seek(4096 * 3);
        file.write(QByteArray(4096 * 4, '\xa5'));
        file.close();
        const Status refused = openForWriting(path.toStdString()).status();
        QVERIFY(!refused.ok());
        QCOMPARE(refused.kind(), ErrorKind::DataCorrupt);
        QVERIFY(refused.message().find("history.db is damaged") != std::string::npos);
    }

    void missingFileIsNotMadeByReading()
    {
        QTemporaryDir dir;
        const QString path = dir.filePath("history.db");
        const Status refused = openForReading(path.toStdString()).status();
        QVERIFY(!refused.ok());
        QCOMPARE(refused.kind(), ErrorKind::InvalidArgument);
        QVERIFY(!QFile::exists(path));
    }

    void folderThatCannotBeMadeIsNamed()
    {
        QTemporaryDir dir;
        writeFile(dir.filePath("plain"), "x");
        const Status refused =
            openForWriting(dir.filePath("plain/history.db").toStdString()).status();
        QVERIFY(!refused.ok());
        QCOMPARE(refused.kind(), ErrorKind::Io);
        QVERIFY(refused.message().find("plain") != std::string::npos);
    }

    void localFolderIsNoNetwork()
    {
        QTemporaryDir dir;
        const auto kind = fileSystemKind(dir.filePath("not/there/yet.db").toStdString());
        QVERIFY(kind != FileSystemKind::Network);
    }
};

MR_TEST(TestSchema)

} // namespace mr::test::tst_schema

#include "tst_schema.moc"
