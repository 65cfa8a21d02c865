#include "gpu_replay/oracle/request_script.hpp"

#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>

namespace oracle
{
namespace
{
const std::map<std::string, Operation> operations = {
    {"a", Operation::allocate},         {"f", Operation::free},
    {"r", Operation::record_stream},    {"c", Operation::complete},
    {"e", Operation::empty_cache},      {"F", Operation::fraction},
    {"pc", Operation::pool_create},     {"pb", Operation::pool_begin},
    {"pe", Operation::pool_end},        {"pr", Operation::pool_release},
    {"po", Operation::pool_use_on_oom}, {"pn", Operation::pool_no_split},
    {"k", Operation::capture},          {"d", Operation::device},
    {"rp", Operation::reset_peak},      {"ra", Operation::reset_accumulated},
    {"stats", Operation::statistics},   {"set", Operation::settings},
};

// The words of a line, taken one by one.
class Words
{
  public:
    explicit Words(const std::string &line) : stream(line)
    {
    }

    bool has_more()
    {
        stream >> std::ws;
        return !stream.eof();
    }

    std::string word()
    {
        std::string text;
        if (!(stream >> text))
            throw std::runtime_error("a word is missing");
        return text;
    }

    uint64_t number()
    {
        std::string text = word();
        size_t used = 0;
        uint64_t value = std::stoull(text, &used);
        if (used != text.size() || text[0] == '-')
            throw std::runtime_error("'" + text + "' is no whole number");
        return value;
    }

    double real()
    {
        std::string text = word();
        size_t used = 0;
        double value = std::stod(text, &used);
        if (used != text.size())
            throw std::runtime_error("'" + text + "' is no number");
        return value;
    }

    std::pair<uint64_t, uint64_t> pool()
    {
        std::string text = word();
        if (text.size() < 2 || (text[0] != 'g' && text[0] != 'm'))
            throw std::runtime_error("'" + text + "' is no pool; write g1 or m1");
        uint64_t number = std::stoull(text.substr(1));
        return text[0] == 'g' ? std::make_pair(number, uint64_t{0})
                              : std::make_pair(uint64_t{0}, number);
    }

  private:
    std::istringstream stream;
};

Request read_request(Operation operation, Words &words)
{
    Request request;
    request.operation = operation;
    switch (operation) {
    case Operation::allocate:
        request.id = static_cast<uint32_t>(words.number());
        request.bytes = words.number();
        request.stream = words.number();
        break;
    case Operation::free:
    case Operation::device:
        request.id = static_cast<uint32_t>(words.number());
        break;
    case Operation::record_stream:
        request.id = static_cast<uint32_t>(words.number());
        request.stream = words.number();
        break;
    case Operation::complete:
        request.stream = words.number();
        break;
    case Operation::empty_cache:
        if (words.has_more())
            request.pool = words.pool();
        break;
    case Operation::fraction:
        request.value = words.real();
        break;
    case Operation::pool_create:
    case Operation::pool_release:
    case Operation::pool_no_split:
        request.pool = words.pool();
        break;
    case Operation::pool_begin: {
        request.pool = words.pool();
        std::string stream = words.word();
        request.is_on = stream == "*";
        if (!request.is_on)
            request.stream = std::stoull(stream);
        break;
    }
    case Operation::pool_end:
        request.pool = words.pool();
        if (words.has_more())
            request.stream = words.number();
        break;
    case Operation::pool_use_on_oom:
        request.pool = words.pool();
        request.is_on = words.has_more() ? words.number() != 0 : true;
        break;
    case Operation::capture:
        request.is_on = words.number() != 0;
        break;
    case Operation::settings:
        request.text = words.word();
        break;
    case Operation::reset_peak:
    case Operation::reset_accumulated:
    case Operation::statistics:
        break;
    }
    return request;
}

void read_line(Script &script, const std::string &line)
{
    Words words(line);
    if (line.empty() || line[0] == '#')
        return;
    std::string key = words.word();
    if (key == "cap") {
        script.capacity = words.number();
    } else if (key == "devices") {
        script.device_count = static_cast<int>(words.number());
    } else if (key == "profile") {
        script.profile = words.word();
    } else if (key == "seed") {
        script.seed = words.word();
    } else {
        auto known = operations.find(key);
        if (known == operations.end())
            throw std::runtime_error("'" + key + "' is no request");
        script.requests.push_back(read_request(known->second, words));
        const Request &added = script.requests.back();
        if (added.operation == Operation::allocate) {
            if (added.id > 100000000)
                throw std::runtime_error("an id is at most 100000000");
            if (added.id >= script.id_count)
                script.id_count = added.id + 1;
        }
    }
    if (words.has_more())
        throw std::runtime_error("too many words");
}

void check_ids(const Script &script)
{
    for (const Request &request : script.requests)
        if ((request.operation == Operation::free ||
             request.operation == Operation::record_stream) &&
            request.id >= script.id_count)
            throw std::runtime_error("an id was never allocated");
}
} // namespace

Script load_script(const std::string &path)
{
    Script script;
    std::ifstream file(path);
    if (!file)
        throw std::runtime_error(path + ": cannot be read");
    std::string line;
    for (uint64_t number = 1; std::getline(file, line); number++) {
        try {
            read_line(script, line);
        } catch (const std::exception &failure) {
            throw std::runtime_error(path + ":" + std::to_string(number) + ": " + failure.what());
        }
    }
    check_ids(script);
    return script;
}
} // namespace oracle
