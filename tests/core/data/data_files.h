// Files for the tests of core/data: the shared real data where it is present, and files made here.

#pragma once

#include <QDir>
#include <QFile>
#include <QTemporaryDir>
#include <QtTest>

#include <sstream>
#include <string>
#include <string_view>

namespace mr::test {

// The folder of real input, or empty after saying so: the caller returns then.
inline std::string sharedData()
{
    QStringList places;
    if (qEnvironmentVariableIsSet("MILLRACE_SHARED"))
        places << qEnvironmentVariable("MILLRACE_SHARED");
    if (qEnvironmentVariableIsSet("MILLRACE_SOURCE"))
        places << qEnvironmentVariable("MILLRACE_SOURCE") + QStringLiteral("/../shared");
    for (const QString& place : places)
        if (QDir(place + QStringLiteral("/data")).exists())
            return QDir::cleanPath(place + QStringLiteral("/data")).toStdString();
    qInfo("skipped: the shared data folder is absent (set MILLRACE_SHARED)");
    return {};
}

inline std::string readFile(const std::string& path)
{
    QFile file(QString::fromStdString(path));
    return file.open(QIODevice::ReadOnly) ? file.readAll().toStdString() : std::string();
}

// A folder that goes away with its owner.
class Folder
{
public:
    std::string path(const std::string& name = {}) const
    {
        return m_dir.path().toStdString() + (name.empty() ? "" : "/" + name);
    }

    std::string write(const std::string& name, std::string_view content) const
    {
        QFile file(QString::fromStdString(path(name)));
        if (!file.open(QIODevice::WriteOnly) ||
            file.write(content.data(), static_cast<qint64>(content.size())) !=
                static_cast<qint64>(content.size()))
            qFatal("cannot write a test file");
        return path(name);
    }

private:
    QTemporaryDir m_dir;
};

inline bool contains(const std::string& text, std::string_view part)
{
    const bool found = text.find(part) != std::string::npos;
    if (!found)
        qWarning("\"%s\" lacks \"%s\"", text.c_str(), std::string(part).c_str());
    return found;
}

} // namespace mr::test
