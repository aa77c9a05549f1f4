// What the newest publication shows is asked for again whenever there is a newer one; numbers at every commit.
(() => {
  const RETRY_MS = 3000;
  const $ = (id) => document.getElementById(id);
  let shown = null, place = null, held = false, news = new Map();

  const open = async (address, more) => {
    const token = sessionStorage.getItem("token");
    const headers = { ...(token ? { Authorization: `Bearer ${token}` } : {}), ...more };
    const answer = await fetch(address, { headers });
    $("token-form").hidden = answer.status !== 401;
    if (answer.ok) return answer;
    throw new Error((await answer.json()).detail);
  };
  const ask = async (address) => (await open(address)).json();

  // Where one was: what is unfolded, scrolled to and has the focus is found again by its cluster.
  const named = (element) => element && `${element.classList.contains("part") ? ".part" : ".line"}` +
    `${element.dataset.kind ? `[data-kind="${element.dataset.kind}"]` : ""}[data-id="${element.dataset.id}"]`;
  const unfolded = () => [...$("tree").querySelectorAll("details[open]")]
    .map((each) => named(each.parentElement.querySelector(".part")));
  const swap = (found) => {
    const before = unfolded(), focus = named(document.activeElement?.closest(".part, .line"));
    const tops = ["#tree", "#lives .wide"].map((each) => [each, document.querySelector(each)?.scrollTop ?? 0]);
    $("tree").innerHTML = found.tree;
    $("lives").innerHTML = found.timeline;
    $("remark").textContent = found.remark;
    for (const each of before) {
      const details = document.querySelector(each)?.parentElement.querySelector("details");
      if (details) details.open = true;
    }
    explore(found.data);
    for (const [each, top] of tops) { const box = document.querySelector(each); if (box) box.scrollTop = top; }
    if (focus) document.querySelector(focus)?.focus({ preventScroll: true });
  };

  const tell = (stream) => {
    const many = (count, what) => `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;
    const found = stream.n_groups ? many(stream.n_groups, "group") : many(stream.n_clusters, "cluster");
    document.title = `${stream.name}: ${found}`;
    document.querySelector("h1").textContent = `${found} of ${many(stream.n_inserted, "row")}`;
    document.querySelector(".subtitle").textContent = `stream ${stream.name}, family ${stream.family}, prior ${stream.prior}`;
    const facts = { observations: stream.n_inserted, groups: stream.n_groups, clusters: stream.n_clusters,
      "clusters that ended": stream.n_clusters_retired, publications: stream.publication, unreadable: stream.n_dead };
    document.querySelector("header dl").replaceChildren(...Object.entries(facts).map(([name, value]) => {
      const pair = document.createElement("div");
      for (const [kind, text] of [["dt", name], ["dd", value.toLocaleString("en")]])
        pair.append(Object.assign(document.createElement(kind), { textContent: text }));
      return pair;
    }));
    const said = stream.warnings?.length ? stream.warnings.map((text) => `⚠ ${text}`)
      : stream.warnings ? ["✓ Believe it. No check gave a reason to doubt it."] : [];
    $("doubts").className = stream.warnings?.length ? "trust doubt" : said.length ? "trust" : "";
    $("doubts").replaceChildren(...said.map((text) =>
      Object.assign(document.createElement("p"), { textContent: text })));
  };

  const KINDS = { birth: ["birth", "births"], split: ["split", "splits"], merge: ["merge", "merges"],
    move: ["move", "moves"], retire: ["end", "ends"] };
  const since = (publication) => {
    const said = Object.entries(KINDS).filter(([kind]) => news.get(kind))
      .map(([kind, [one, many]]) => `${news.get(kind)} ${news.get(kind) === 1 ? one : many}`);
    news = new Map();
    return `Publication ${publication}${said.length ? `: ${said.join(", ")}` : ""}.`;
  };
  const refresh = async () => {
    const stream = await ask("/v1/stream");
    tell(stream);
    // Before the first publication clusters are those of arrival.
    if (held || (shown && shown === stream.publication)) return;
    const found = await ask("/v1/explored?limit=5000");
    if (found.data) swap(found);
    shown = found.publication;
    $("state").textContent = found.data ? since(shown) : "Too few observations yet.";
  };

  const told = async (part) => {
    const field = (name) => part.split("\n").find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
    if (field("event") === "lineage") {
      const { kind } = JSON.parse(field("data"));
      news.set(kind, (news.get(kind) ?? 0) + 1);
    }
    if (field("event") === "epoch") { await refresh(); place = field("id"); }
  };
  // By fetch, because an EventSource cannot carry a token.
  const listen = async () => {
    const answer = await open("/v1/events", place === null ? {} : { "Last-Event-ID": place });
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ;) {
      const { value, done } = await reader.read();
      if (done) return;
      const parts = (rest + value).split("\n\n");
      rest = parts.pop();
      for (const part of parts) await told(part);
    }
  };

  let hurry = () => {};
  const live = async () => {
    for (;;) {
      try {
        await listen();
      } catch (error) {
        $("state").textContent = String(error.message || error);
      }
      await new Promise((resume) => { hurry = resume; setTimeout(resume, RETRY_MS); });
    }
  };
  $("token-form").addEventListener("submit", (event) => {
    event.preventDefault();
    sessionStorage.setItem("token", $("token").value);
    hurry();
  });
  $("hold").addEventListener("click", () => {
    held = !held;
    $("hold").setAttribute("aria-pressed", String(held));
    if (!held) refresh().catch((error) => { $("state").textContent = String(error.message || error); });
  });
  live();
})();
