"""Plots of what the suite has measured: small SVG files, the same bytes for the same results."""
import re

try:
    import matplotlib
    matplotlib.use("svg")
    from matplotlib import pyplot
except ImportError:
    matplotlib = None

UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}


def bytes_of(size):
    return int(re.match(r"\d+", size).group()) * UNITS[re.sub(r"\d+", "", size)]


def panels(results, width=4.2):
    figure, axes = pyplot.subplots(1, len(results), figsize=(width * len(results), 3.2), squeeze=False,
                                   layout="constrained")
    for axis, network in zip(axes[0], results):
        axis.set_title(network, fontsize=10)
        axis.grid(alpha=0.3)
    return figure, dict(zip(results, axes[0]))


def throughput(results):
    """Ratios, because lines of different sizes were measured at different times."""
    figure, axes = panels(results)
    for network, lines in results.items():
        axis = axes[network]
        for verb, style in (("read", "-"), ("write", "--")):
            curves = {"best by hand": {}, "socket": {}, "Asio": {}}
            for name, line in lines.items():
                if found := re.fullmatch(rf"tcp/{verb}/(\d+[KM]iB)(?:, (socket|Asio))?", name):
                    curves[found[2] or "best by hand"][bytes_of(found[1])] = line["ratio"]
            for (name, points), color in zip(curves.items(), ("C0", "C2", "C3")):
                axis.plot(sorted(points), [points[size] for size in sorted(points)], style, color=color,
                          marker=".", label=f"by {name}, {verb}")
        axis.axhline(1, color="black", linewidth=0.8)
        axis.set_xscale("log", base=2)
        axis.set_xticks([1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20], ["4K", "16K", "64K", "256K", "1M"])
        axis.set_yscale("log")
        axis.set_yticks([0.5, 1, 2, 5, 10, 20, 50], ["0.5", "1", "2", "5", "10", "20", "50"])
        axis.set_xlabel("bytes of one call")
        axis.set_ylabel("rate of ucxio, by theirs")
    axes[next(iter(axes))].legend(fontsize=6)
    return figure


def rates(results):
    """What each moved beside us; of ours, the median of those that the loops by hand were beside."""
    figure, axes = panels(results)
    for network, lines in results.items():
        axis = axes[network]
        for verb, style in (("read", "-"), ("write", "--")):
            curves = {"ucxio": {}, "best by hand": {}, "socket": {}, "Asio": {}}
            for name, line in lines.items():
                if found := re.fullmatch(rf"tcp/{verb}/(\d+[KM]iB)(?:, (socket|Asio))?", name):
                    curves[found[2] or "best by hand"][bytes_of(found[1])] = line["best"]
                    if not found[2]:
                        curves["ucxio"][bytes_of(found[1])] = line["ours"]
            for (name, points), color in zip(curves.items(), ("C1", "C0", "C2", "C3")):
                axis.plot(sorted(points), [points[size] for size in sorted(points)], style, color=color,
                          marker=".", label=f"{name}, {verb}")
        axis.set_xscale("log", base=2)
        axis.set_xticks([1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20], ["4K", "16K", "64K", "256K", "1M"])
        axis.set_xlabel("bytes of one call")
        axis.set_ylabel("GB/s")
        axis.set_ylim(bottom=0)
    axes[next(iter(axes))].legend(fontsize=6)
    return figure


def latency(results):
    figure, axes = panels(results)
    for network, lines in results.items():
        axis = axes[network]
        for name, line in lines.items():
            if name.startswith("latency/"):
                told = [line[key] for key in ("p50", "p90", "p99", "p99.9") if key in line]
                axis.plot(range(len(told)), told, marker=".", label=name.removeprefix("latency/8B/"))
        axis.set_xticks(range(4), ["50 %", "90 %", "99 %", "99.9 %"])
        axis.set_yscale("log")
        axis.set_ylabel("microseconds for 8 bytes, at most")
    axes[next(iter(axes))].legend(fontsize=6)
    return figure


def processor_time(results):
    figure, axes = panels(results)
    for network, lines in results.items():
        ratios = {}
        for name, line in lines.items():
            if found := re.match(r"cpu/(read|write)/", name):
                ratios |= {f"{found[1]}, {key[3:]}": value for key, value in line.items() if key.startswith("vs ")}
        axis = axes[network]
        axis.barh(list(ratios), list(ratios.values()))
        axis.axvline(1, color="black", linewidth=0.8)
        axis.tick_params(axis="y", labelsize=7)
        axis.set_xlim(0, max(1.1, *ratios.values()) if ratios else 1.1)
        axis.set_xlabel("processor time for a byte, ours by theirs")
    return figure


def scaling(results):
    figure, axes = panels(results)
    for network, lines in results.items():
        axis = axes[network]
        for kind in ("streams", "clients"):
            points = {1: 1.0}
            for name, line in lines.items():
                if found := re.fullmatch(rf"server/(\d+) {kind} at once", name):
                    points[int(found[1])] = line["ratio"]
            axis.plot(sorted(points), [points[count] for count in sorted(points)], marker=".", label=kind)
        axis.set_xscale("log", base=2)
        axis.set_xticks([1, 4, 16, 64], ["1", "4", "16", "64"])
        axis.set_xlabel("at once")
        axis.set_ylabel("total rate, by that of one")
        axis.set_ylim(bottom=0)
    axes[next(iter(axes))].legend(fontsize=8)
    return figure


def memory(results):
    figure, axes = panels(results)
    for network, lines in results.items():
        points = {line["connections"]: line["rate"] for name, line in lines.items()
                  if "memory of a connection" in name}
        axis = axes[network]
        axis.plot(list(points), list(points.values()), marker=".")
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xlabel("connections")
        axis.set_ylabel("kB of the server for each")
    return figure


PLOTS = [
    ("throughput.svg", throughput, "Throughput over TCP beside others, by the bytes of one call"),
    ("rates.svg", rates, "Rates over TCP, by the bytes of one call"),
    ("latency.svg", latency, "Latency of 8-byte reads over TCP"),
    ("processor-time.svg", processor_time, "Processor time of both sides for a byte over TCP"),
    ("scaling.svg", scaling, "Total rate of many streams, and of many clients"),
    ("memory.svg", memory, "Memory of a server, for each connection"),
]


def draw(results, folder):
    """Returns name and caption of each plot that it has written."""
    if matplotlib is None:
        return []
    matplotlib.rcParams["svg.hashsalt"] = "ucxio"
    matplotlib.rcParams["svg.fonttype"] = "none"
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for name, make, caption in PLOTS:
        figure = make(results)
        figure.savefig(folder / name, metadata={"Date": None})
        pyplot.close(figure)
        drawn.append((name, caption))
    return drawn
