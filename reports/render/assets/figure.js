// Every figure of the page: drawn, drawn again when its place changes, saved as a picture, copied as text.

// A figure that is folded has no width yet, and must be drawn for paper all the same.
function widthOf(canvas) {
  let place = canvas;
  while (place && !place.clientWidth) place = place.parentElement;
  return place ? place.clientWidth : NARROW;
}

function mount(figure) {
  const data = JSON.parse(figure.querySelector("script").textContent);
  const canvas = figure.querySelector(".canvas");
  const kind = kinds[figure.dataset.kind];
  const chart = echarts.init(canvas, null, { renderer: "svg" });
  const state = { chart };
  let drawn = 0;
  state.redraw = () => {
    drawn = widthOf(canvas);
    const { option, height } = kind(data, lookOf(), drawn, state);
    canvas.style.height = `${height}px`;
    chart.resize({ width: drawn, height });
    chart.setOption(option, { notMerge: true });
  };
  if (kind.controls) figure.querySelector(".controls").append(...kind.controls(data, state));
  state.redraw();
  canvas.after(tools(figure.querySelector("h3").textContent, kind, data, state, canvas));
  new ResizeObserver(() => canvas.clientWidth && canvas.clientWidth !== drawn && state.redraw()).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", state.redraw);
  chart.on("datazoom", () => {
    state.zoom = chart.getOption().dataZoom.map(({ start, end }) => ({ start, end }))[0];
    if (kind.zoomed) chart.setOption(kind.zoomed(data, state, drawn));
  });
  const paper = (on) => () => { document.documentElement.classList.toggle("on-paper", on); state.redraw(); };
  addEventListener("beforeprint", paper(true));
  addEventListener("afterprint", paper(false));
}

function tools(title, kind, data, state, canvas) {
  const place = element("div", "tools");
  const button = (text, told, act) => {
    const made = element("button", "save", text);
    made.type = "button";
    made.title = told;
    made.setAttribute("aria-label", told);
    made.addEventListener("click", () => act(made));
    place.append(made);
  };
  button("Save PNG", `save “${title}” as a PNG picture`, () => savePicture(title, kind, data, state, widthOf(canvas)));
  button("Copy CSV", `copy the numbers of “${title}” as CSV`, (made) => copyRows(title, csvText(kind.rows(data)), made));
  return place;
}

const SHARPNESS = 2;

// The chart under its title. The page draws as SVG; a picture takes a canvas, which nobody sees.
function savePicture(title, kind, data, state, width) {
  const look = lookOf();
  const { option, height } = kind(data, look, width, state);
  const drawing = echarts.init(element("div"), null, { renderer: "canvas", width, height, devicePixelRatio: SHARPNESS });
  drawing.setOption(option);
  const [head, margin] = [34, 12];
  const picture = element("canvas");
  picture.width = SHARPNESS * (width + 2 * margin);
  picture.height = SHARPNESS * (height + head + 2 * margin);
  const brush = picture.getContext("2d");
  brush.fillStyle = look.paper;
  brush.fillRect(0, 0, picture.width, picture.height);
  brush.scale(SHARPNESS, SHARPNESS);
  brush.fillStyle = look.ink;
  brush.font = `600 16px ${look.font}`;
  brush.fillText(title, margin, margin + 16, width);
  brush.drawImage(drawing.renderToCanvas({ pixelRatio: SHARPNESS }), margin, margin + head, width, height);
  drawing.dispose();
  picture.toBlob((blob) => download(title, "png", blob), "image/png");
}

// The clipboard may be closed to this page: then the older way is tried, and at last a file is saved.
async function copyRows(title, text, button) {
  const copied = await navigator.clipboard?.writeText(text).then(() => true, () => false);
  const done = copied || copiedFromPage(text);
  if (!done) download(title, "csv", new Blob([text], { type: "text/csv" }));
  const said = button.textContent;
  button.textContent = done ? "Copied" : "Saved as CSV";
  setTimeout(() => { button.textContent = said; }, 1500);
}

function copiedFromPage(text) {
  const area = element("textarea", "unseen");
  area.value = text;
  document.body.append(area);
  area.select();
  try {
    return document.execCommand("copy");
  } catch {
    return false;
  } finally {
    area.remove();
  }
}

for (const figure of document.querySelectorAll("figure[data-kind]")) mount(figure);
