// CliRig: the built `millrace` as a process, with a small model, data and history of its own.

#pragma once

#include "core/run/run_rig.h"

#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>

#include <initializer_list>

namespace mr::test {

// Exit code and output of a finished process.
struct Finished {
    int code = -1;
    QByteArray out;
    QByteArray errors;

    // Every line of stdout as an object; stops the test program if one is anything else.
    std::vector<QJsonObject> lines() const
    {
        std::vector<QJsonObject> objects;
        if (!out.isEmpty() && !out.endsWith('\n'))
            qFatal("stdout ends inside a line: %s", out.constData());
        for (const QByteArray& line : out.split('\n')) {
            if (line.isEmpty())
                continue;
            const QJsonDocument document = QJsonDocument::fromJson(line);
            if (!document.isObject())
                qFatal("not a JSON object: %s", line.constData());
            objects.push_back(document.object());
        }
        return objects;
    }

    std::vector<QJsonObject> events(const char* kind) const
    {
        std::vector<QJsonObject> objects;
        for (const QJsonObject& object : lines())
            if (object[QLatin1String("event")].toString() == QLatin1String(kind))
                objects.push_back(object);
        return objects;
    }

    std::string hash() const
    {
        const auto ends = events("end");
        return ends.empty() ? std::string()
                            : ends[0][QLatin1String("weights_hash")].toString().toStdString();
    }

    bool says(std::string_view part) const { return contains(errors.toStdString(), part); }
};

struct CliRig {
    Folder folder;
    Folder model;

    CliRig()
    {
        writeSmallModel(model);
        folder.write("pairs.jsonl", smallPairs(60));
    }

    static void start(QProcess& process, const QStringList& arguments)
    {
        process.start(QStringLiteral(MR_MILLRACE), arguments);
        if (!process.waitForStarted())
            qFatal("cannot start %s", MR_MILLRACE);
    }

    static Finished finish(QProcess& process)
    {
        if (!process.waitForFinished(60'000))
            qFatal("millrace did not end within a minute");
        return {process.exitStatus() == QProcess::NormalExit ? process.exitCode() : -1,
            process.readAllStandardOutput(), process.readAllStandardError()};
    }

    static Finished run(const QStringList& arguments)
    {
        QProcess process;
        start(process, arguments);
        return finish(process);
    }

    // The program as "$0" and its arguments as "$@" of a script for sh.
    static Finished shell(const char* script, const QStringList& arguments)
    {
        QProcess process;
        process.start(QStringLiteral("/bin/sh"),
            QStringList{
                QStringLiteral("-c"), QString::fromLatin1(script), QStringLiteral(MR_MILLRACE)} +
                arguments);
        return finish(process);
    }

    QString path(const char* name) const { return QString::fromStdString(folder.path(name)); }
    QString modelPath() const { return QString::fromStdString(model.path()); }
    QString database() const { return path("history.db"); }

    // `train` with everything named, so that nothing of this machine's user is touched.
    QStringList train(const char* out, const QStringList& more = {}) const
    {
        QStringList arguments{QStringLiteral("train"), QStringLiteral("--json"),
            QStringLiteral("--model"), modelPath(), QStringLiteral("--data"), path("pairs.jsonl"),
            QStringLiteral("--out"), path(out), QStringLiteral("--db"), database()};
        arguments += QStringLiteral(
            "--seq-len 40 --micro-batch 2 --accumulate 2 --lr 3e-3 --precision fp32 --threads 1")
                         .split(QLatin1Char(' '));
        return arguments + more;
    }

    QStringList resume(const char* out) const
    {
        return {QStringLiteral("resume"), path(out), QStringLiteral("--json"),
            QStringLiteral("--db"), database()};
    }
};

inline QStringList words(const char* text)
{
    return QString::fromLatin1(text).split(QLatin1Char(' '));
}

} // namespace mr::test
