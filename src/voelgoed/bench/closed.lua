-- wrk -s closed.lua URL -- requests.txt : each line of the file is "METHOD PATH TOKEN", sent once, in its order; after the
-- last one the first is sent again.
local lines, count, at = {}, 0, 0

function init(args)
  for line in io.lines(args[1]) do
    local method, path, token = line:match("^(%S+) (%S+) (%S+)$")
    count = count + 1
    lines[count] = method .. " " .. path .. " HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer " .. token
      .. "\r\nContent-Length: 0\r\n\r\n"
  end
end

function request()
  at = at % count + 1
  return lines[at]
end

function done(summary, latency)
  io.write(string.format(
    "RESULT requests=%d seconds=%.6f refused=%d broken=%d p50=%.3f p95=%.3f p99=%.3f max=%.3f\n",
    summary.requests, summary.duration / 1e6, summary.errors.status,
    summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout,
    latency:percentile(50) / 1e3, latency:percentile(95) / 1e3, latency:percentile(99) / 1e3, latency.max / 1e3))
end
